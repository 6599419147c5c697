import type { ASTNode } from '@marcbachmann/cel-js'
import type { Path } from '../../../api/codec/cursor.ts'
import { PathError } from '../../../api/codec/element.ts'
import { absent, type Evaluation } from './evaluation.ts'
import { functions, methods, type KnownFunction } from './functions.ts'
import { isEqual, operators } from './operators.ts'
import { any, commonShape, fieldShape, hasMessage, scalar, type Shape } from './shape.ts'
import {
  Failure,
  isNumber,
  listOf,
  MadeList,
  MadeMap,
  memberOf,
  shownKey,
  typeOf,
  type Value,
} from './value.ts'

/** How deep comprehensions may be nested. */
export const deepestComprehension = 2

export type Run = (evaluation: Evaluation) => Value

/** The variables of expressions besides the object. */
export type Variable = 'node' | 'pool'

/** A part of an expression: the facts of its value, and how to evaluate it. */
interface Part {
  readonly shape: Shape
  readonly run: Run
  /** Its path in the object, where known in advance. */
  readonly path?: Path
  /** Whether a value exists; only for what may be absent. */
  readonly has?: Run
}

/** A mistake in an expression. */
export interface CelMistake {
  readonly what: string
  /** The offset in characters. */
  readonly at: number
}

/** Compiles a parsed expression, and collects its mistakes for objects of one shape. */
export class Compiler {
  readonly mistakes: CelMistake[] = []
  readonly variables = new Set<Variable>()
  readonly #object: Shape
  readonly #locals: { readonly name: string; readonly shape: Shape }[] = []
  readonly #paths = new Map<string, Path>()

  constructor(object: Shape) {
    this.#object = object
  }

  /** Compiles an expression whose value is no whole message, which might have unknown fields. */
  value(node: ASTNode): Run {
    return this.#whole(node).run
  }

  #whole(node: ASTNode): Part {
    const part = this.#readable(node)
    if (hasMessage(part.shape))
      this.#wrong(node, `${textOf(node)} cannot be used as a whole: name its fields`)
    return part
  }

  /** A part whose value is used, and not only fields of it. */
  #readable(node: ASTNode): Part {
    const part = this.#part(node)
    return part.path?.length === 0
      ? this.#wrong(node, 'object cannot be used as a whole: name its fields')
      : part
  }

  #wrong(node: ASTNode, what: string): Part {
    this.mistakes.push({ what, at: node.start })
    return { shape: any, run: () => new Failure(what) }
  }

  #part(node: ASTNode): Part {
    const { run, ...rest } = this.#unmetered(node)
    return {
      ...rest,
      run(evaluation) {
        evaluation.spend(1)
        return run(evaluation)
      },
    }
  }

  #unmetered(node: ASTNode): Part {
    switch (node.op) {
      case 'value':
        return this.#literal(node, node.args)
      case 'id':
        return this.#variable(node, node.args)
      case '.':
        return this.#select(node, node.args[0], node.args[1])
      case '[]':
        return this.#index(node, node.args[0], node.args[1])
      case 'call':
        return this.#call(node, node.args[0], node.args[1])
      case 'rcall':
        return this.#method(node, node.args[0], node.args[1], node.args[2])
      case 'list':
        return this.#list(node, node.args)
      case 'map':
        return this.#map(node.args)
      case '?:':
        return this.#choice(node, node.args)
      case '||':
        return this.#logic(node.args, true)
      case '&&':
        return this.#logic(node.args, false)
      case '!_':
        return this.#unary(node.args, 'bool', (value) => !value)
      case '-_':
        return this.#unary(node.args, 'number', (value) =>
          typeof value === 'bigint' ? BigInt.asIntN(64, -value) : -Number(value),
        )
      case '.?':
      case '[?]':
        return this.#wrong(node, 'optional values are not available')
      default:
        return this.#binary(node.op, node.args)
    }
  }

  #literal(node: ASTNode, value: unknown): Part {
    if (
      value === null ||
      typeof value === 'string' ||
      typeof value === 'bigint' ||
      typeof value === 'number' ||
      typeof value === 'boolean'
    )
      return { shape: scalar, run: () => value }
    return this.#wrong(node, 'bytes and unsigned numbers are not available')
  }

  #variable(node: ASTNode, name: string): Part {
    const at = this.#locals.findLastIndex((local) => local.name === name)
    const local = this.#locals[at]
    if (local) return { shape: local.shape, run: ({ locals }) => locals[at] ?? null }
    if (name === 'object')
      return { shape: this.#object, path: [], run: () => new Failure('object as a whole') }
    if (name !== 'node' && name !== 'pool')
      return this.#wrong(node, `${name} is not known; there are object, node and pool`)
    this.variables.add(name)
    return {
      shape: any,
      run: ({ variables }) =>
        variables[name] === undefined ? new Failure(`${name} is not known`) : variables[name],
    }
  }

  #select(node: ASTNode, of: ASTNode, name: string): Part {
    const base = this.#part(of)
    return this.#at(base, name, this.#fieldOf(node, base, name))
  }

  /** The member of that name, by path where the path of its parent is known. */
  #at(base: Part, key: string | number, shape: Shape): Part {
    if (base.path) {
      const path = this.#known([...base.path, key])
      return {
        shape,
        path,
        has: (evaluation) => evaluation.has(path),
        run: (evaluation) => evaluation.read(path) ?? absent(path),
      }
    }
    const member = (evaluation: Evaluation): Value | undefined =>
      memberOf(base.run(evaluation), key as string)
    return {
      shape,
      has(evaluation) {
        const found = member(evaluation)
        return found instanceof Failure ? found : found !== undefined
      },
      run: (evaluation) => member(evaluation) ?? absent([key]),
    }
  }

  /** One array for each path, by whose identity values that were read are found again. */
  #known(path: Path): Path {
    const key = JSON.stringify(path)
    const known = this.#paths.get(key)
    if (known) return known
    this.#paths.set(key, path)
    return path
  }

  #fieldOf(node: ASTNode, { shape, path }: Part, name: string): Shape {
    if (path?.length === 0 && (name === 'kind' || name === 'apiVersion'))
      return this.#wrong(node, `${textOf(node)} is absent in lists`).shape
    switch (shape.kind) {
      case 'any':
        return any
      case 'map':
        return shape.of
      case 'scalar':
      case 'list':
        return this.#wrong(node, `${textOf(node)}: no ${shape.kind} has fields`).shape
      case 'message':
        try {
          return fieldShape(shape.schema, name)
        } catch (cause) {
          if (!(cause instanceof PathError)) throw cause
          return this.#wrong(node, `${textOf(node)}: ${cause.message}`).shape
        }
    }
  }

  #index(node: ASTNode, of: ASTNode, by: ASTNode): Part {
    const base = this.#part(of)
    const constant = by.op === 'value' ? by.args : undefined
    if (typeof constant === 'string')
      return this.#at(base, constant, this.#fieldOf(node, base, constant))
    if (base.shape.kind === 'message')
      return this.#wrong(node, `${textOf(node)}: fields are named, not computed`)
    if (base.shape.kind === 'scalar')
      return this.#wrong(node, `${textOf(node)}: no scalar has elements`)
    const shape = base.shape.kind === 'any' ? any : base.shape.of
    // In a value of unknown shape a number may only be a list index.
    if (
      typeof constant === 'bigint' &&
      constant >= 0n &&
      constant < 10_000n &&
      base.path &&
      base.shape.kind !== 'map'
    )
      return this.#at(base, Number(constant), shape)
    const index = this.value(by)
    if (base.path?.length === 0)
      return this.#wrong(node, 'fields of the object are named, not computed')
    return {
      shape,
      run(evaluation) {
        const [container, key] = [base.run(evaluation), index(evaluation)]
        if (key instanceof Failure) return key
        const list = listOf(container)
        if (!list) return memberOf(container, key) ?? absent([shownKey(key)])
        const isIn = typeof key === 'bigint' && key >= 0n && key < BigInt(list.length)
        return isIn ? list.at(Number(key)) : new Failure(`no such element: ${shownKey(key)}`)
      },
    }
  }

  #call(node: ASTNode, name: string, given: readonly ASTNode[]): Part {
    if (name === 'has') return this.#has(node, given)
    const known = Object.hasOwn(functions, name) ? functions[name] : undefined
    if (!known) return this.#wrong(node, unavailable(name))
    return this.#applied(node, name, known, given, given)
  }

  #applied(
    node: ASTNode,
    name: string,
    { call, fewest, most }: KnownFunction,
    values: readonly ASTNode[],
    counted: readonly ASTNode[],
  ): Part {
    if (counted.length < fewest || counted.length > most)
      return this.#wrong(
        node,
        `${name} takes ${fewest === most ? fewest : `${fewest} or ${most}`} arguments`,
      )
    // The size of a list does not depend on its elements.
    const runs = values.map((value) => {
      const part = this.#readable(value)
      if (name === 'size' && part.shape.kind === 'list') return part.run
      if (hasMessage(part.shape))
        this.#wrong(value, `${textOf(value)} cannot be used as a whole: name its fields`)
      return part.run
    })
    return {
      shape: name === 'split' ? { kind: 'list', of: scalar } : name === 'dyn' ? any : scalar,
      run(evaluation) {
        const args: Value[] = []
        for (const run of runs) {
          const value = run(evaluation)
          if (value instanceof Failure) return value
          args.push(value)
        }
        return call(args, evaluation)
      },
    }
  }

  #has(node: ASTNode, [field]: readonly ASTNode[]): Part {
    if (field?.op !== '.')
      return this.#wrong(node, 'has() takes a field, as in has(object.spec.type)')
    const [of] = field.args
    const base = this.#part(of)
    const { has } = this.#at(base, field.args[1], this.#fieldOf(field, base, field.args[1]))
    if (!has) return this.#wrong(node, 'has() takes a field')
    return {
      shape: scalar,
      run(evaluation) {
        if (!base.path || base.path.length === 0) return has(evaluation)
        // As in CEL, the parent of the field has to exist.
        return evaluation.has(base.path) ? has(evaluation) : absent(base.path)
      },
    }
  }

  #method(node: ASTNode, name: string, receiver: ASTNode, given: readonly ASTNode[]): Part {
    if (Object.hasOwn(comprehensions, name)) return this.#comprehension(node, name, receiver, given)
    const known = Object.hasOwn(methods, name) ? methods[name] : undefined
    if (!known) return this.#wrong(node, unavailable(name))
    return this.#applied(node, name, known, [receiver, ...given], given)
  }

  #comprehension(node: ASTNode, name: string, receiver: ASTNode, given: readonly ASTNode[]): Part {
    const [variable, ...bodies] = given
    if (variable?.op !== 'id' || bodies.length === 0 || bodies.length > (name === 'map' ? 2 : 1))
      return this.#wrong(node, `${name} takes a variable and an expression of it`)
    if (this.#locals.length >= deepestComprehension)
      return this.#wrong(
        node,
        `${name} is nested in more than ${deepestComprehension - 1} other: its cost has no bound`,
      )
    const { shape, run: range } = this.#readable(receiver)
    if (shape.kind === 'message' || shape.kind === 'scalar')
      return this.#wrong(node, `${textOf(receiver)} is no list and no map`)
    const element = shape.kind === 'list' ? shape.of : shape.kind === 'map' ? scalar : any
    const at = this.#locals.length
    this.#locals.push({ name: variable.args, shape: element })
    const parts = bodies.map((body, i) =>
      name === 'map' && i === bodies.length - 1 ? this.#readable(body) : this.#whole(body),
    )
    this.#locals.pop()
    const made = parts.at(-1)?.shape ?? any
    const loop = comprehensions[name] as Loop
    return {
      shape:
        name === 'map'
          ? { kind: 'list', of: made }
          : name === 'filter'
            ? { kind: 'list', of: element }
            : scalar,
      run(evaluation) {
        const over = range(evaluation)
        if (over instanceof Failure) return over
        const list = evaluation.rangeOf(over)
        if (!list) return new Failure(`no such overload: ${typeOf(over)}.${name}()`)
        const each = function* (): Generator<readonly [Value, Value, Value]> {
          for (let index = 0; index < list.length; index++) {
            const item = list.at(index)
            evaluation.locals[at] = item
            const first = parts[0]?.run(evaluation) ?? null
            const second = parts[1] && first === true ? parts[1].run(evaluation) : null
            yield [item, first, second]
          }
        }
        return loop(each(), parts.length)
      },
    }
  }

  #list(node: ASTNode, items: readonly ASTNode[]): Part {
    const parts = items.map((item) => this.#readable(item))
    const of = parts.reduce<Shape | undefined>(
      (shape, part, at) => (at === 0 ? part.shape : shape && commonShape(shape, part.shape)),
      any,
    )
    if (!of)
      return this.#wrong(node, 'a list of messages of several kinds: their fields are not the same')
    return {
      shape: { kind: 'list', of },
      run(evaluation) {
        const values = parts.map(({ run }) => run(evaluation))
        return values.find((value) => value instanceof Failure) ?? new MadeList(values)
      },
    }
  }

  #map(entries: readonly (readonly [ASTNode, ASTNode])[]): Part {
    const runs = entries.map(([key, value]) => [this.value(key), this.value(value)] as const)
    return {
      shape: any,
      run(evaluation) {
        const made = new Map<Value, Value>()
        for (const [key, value] of runs) {
          const [name, held] = [key(evaluation), value(evaluation)]
          if (name instanceof Failure) return name
          if (held instanceof Failure) return held
          made.set(name, held)
        }
        return new MadeMap(made)
      },
    }
  }

  #choice(node: ASTNode, [condition, one, other]: readonly [ASTNode, ASTNode, ASTNode]): Part {
    const test = this.value(condition)
    const [yes, no] = [this.#readable(one), this.#readable(other)]
    const shape = commonShape(yes.shape, no.shape)
    if (!shape)
      return this.#wrong(
        node,
        'either of two messages of different kinds: their fields are not the same',
      )
    return {
      shape,
      run(evaluation) {
        const value = test(evaluation)
        if (typeof value === 'boolean') return value ? yes.run(evaluation) : no.run(evaluation)
        return value instanceof Failure
          ? value
          : new Failure(`no such overload: ${typeOf(value)} ? :`)
      },
    }
  }

  /** `deciding`: the operand that decides alone, on either side, even if the other one fails. */
  #logic(nodes: readonly [ASTNode, ASTNode], deciding: boolean): Part {
    const [left, right] = [this.value(nodes[0]), this.value(nodes[1])]
    return {
      shape: scalar,
      run(evaluation) {
        const one = truth(left(evaluation))
        if (one === deciding) return deciding
        const other = truth(right(evaluation))
        if (other === deciding) return deciding
        return one instanceof Failure ? one : other
      },
    }
  }

  #unary(of: ASTNode, type: 'bool' | 'number', act: (value: Value) => Value): Part {
    const run = this.value(of)
    return {
      shape: scalar,
      run(evaluation) {
        const value = run(evaluation)
        if (value instanceof Failure) return value
        const fits = type === 'bool' ? typeof value === 'boolean' : isNumber(value)
        return fits
          ? act(value)
          : new Failure(`no such overload: ${type === 'bool' ? '!' : '-'}${typeOf(value)}`)
      },
    }
  }

  #binary(operator: string, [one, other]: readonly [ASTNode, ASTNode]): Part {
    const act = operators[operator] ?? isEqual
    const [left, right] = [this.value(one), this.value(other)]
    return {
      shape: operator === '+' ? any : scalar,
      run(evaluation) {
        const first = left(evaluation)
        if (first instanceof Failure) return first
        const second = right(evaluation)
        return second instanceof Failure ? second : act(first, second, evaluation)
      },
    }
  }
}

const truth = (value: Value): boolean | Failure =>
  typeof value === 'boolean' || value instanceof Failure
    ? value
    : new Failure(`no such overload: ${typeOf(value)} where a bool is expected`)

/**
 * Each element with the value of the first expression, and of the second where the first is true.
 */
type Loop = (each: Iterable<readonly [Value, Value, Value]>, expressions: number) => Value

/** One deciding element is sufficient, even if others fail. */
const quantifier =
  (deciding: boolean): Loop =>
  (each) => {
    let failed: Failure | undefined
    for (const [, value] of each) {
      const holds = truth(value)
      if (holds === deciding) return deciding
      if (holds instanceof Failure) failed ??= holds
    }
    return failed ?? !deciding
  }

const comprehensions: Readonly<Record<string, Loop>> = {
  exists: quantifier(true),
  all: quantifier(false),
  exists_one(each) {
    let found = 0
    for (const [, value] of each) {
      const holds = truth(value)
      if (holds instanceof Failure) return holds
      if (holds) found++
    }
    return found === 1
  },
  filter(each) {
    const kept: Value[] = []
    for (const [item, value] of each) {
      const holds = truth(value)
      if (holds instanceof Failure) return holds
      if (holds) kept.push(item)
    }
    return new MadeList(kept)
  },
  map(each, expressions) {
    const made: Value[] = []
    for (const [, first, second] of each) {
      const value = expressions === 1 ? first : truth(first) === true ? second : truth(first)
      if (value instanceof Failure) return value
      if (expressions === 1 || first === true) made.push(value)
    }
    return new MadeList(made)
  },
}

const unavailable = (name: string): string =>
  name === 'matches'
    ? 'matches() is not available: the cost of a regular expression has no bound'
    : `${name}() is not available`

/** The text of a part, shortened. */
function textOf({ input, start, end }: ASTNode): string {
  const text = input.slice(start, end)
  return text.length > 60 ? `${text.slice(0, 57)}...` : text
}
