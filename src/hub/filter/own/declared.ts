import { isScalar, LineCounter, parseDocument, visit, type Document } from 'yaml'
import type { Json } from '../../../api/kube/json.ts'
import type { Variable } from '../cel/compile.ts'
import type { VariableValues } from '../cel/evaluation.ts'
import { compile, type Program } from '../cel/program.ts'
import { Failure, typeOf } from '../cel/value.ts'
import type { Cursor, Edit, Filter, FilterDefinition } from '../filter.ts'
import {
  constantOf,
  editFor,
  parsePath,
  whyImpossible,
  type DeclaredEdit,
} from './declared-edit.ts'
import { checkKeys, checkName, checkOnError, checkRule, isFields, printed } from './definition.ts'
import type { Mistakes } from './mistakes.ts'
import { isOfResources, resourceShapes, type ResourceShapes } from './resources.ts'

/** Per file. */
export const mostFilters = 100
export const mostEdits = 20
/** In a file that is not YAML, one mistake causes the next. */
const mostErrors = 10

const keys = ['name', 'components', 'group', 'resources', 'verbs', 'when', 'then', 'onError']
/** Includes replies to writes: the writer of an object gets it filtered, as its readers do. */
const defaultVerbs = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete']

type Fields = Readonly<Record<string, unknown>>

/**
 * The filters declared in a YAML file: conditions in CEL, and what happens to the objects that meet
 * them.
 */
export function filtersDeclaredIn(
  content: string,
  hash: string,
  mistakes: Mistakes,
): readonly FilterDefinition[] {
  const lines = new LineCounter()
  // The parser compares each key of a map with all before it, which takes minutes for many keys.
  const document = parseDocument(content, { lineCounter: lines, uniqueKeys: false })
  for (const { message, linePos } of document.errors.slice(0, mostErrors)) {
    const [{ line } = { line: 1 }] = linePos ?? []
    mistakes.say(`line ${line}`, message.split('\n')[0] ?? '')
  }
  if (document.errors.length > 0 || isAnyKeyTwice(document, lines, mistakes)) return []
  const list = plain(document, mistakes)
  if (list === undefined) return []
  if (!Array.isArray(list) || list.length === 0 || list.length > mostFilters) {
    mistakes.say('', `must be a list of filters, at least one and at most ${mostFilters}`)
    return []
  }
  return list.flatMap((fields: unknown, at) => {
    const location = new YamlLocation(document, lines, mistakes, [at])
    const filter = new Declaration(location).read(fields)
    return filter ? [{ ...filter, revision: hash }] : []
  })
}

function isAnyKeyTwice(document: Document, lines: LineCounter, mistakes: Mistakes): boolean {
  const { length } = mistakes.all
  visit(document, {
    Map(_key, { items }) {
      const keys = new Set<unknown>()
      for (const { key } of items) {
        if (!isScalar(key)) continue
        const { line } = lines.linePos(key.range?.[0] ?? 0)
        if (keys.has(key.value)) {
          mistakes.say(`line ${line}`, `${printed(key.value)} appears twice in one map`)
          return visit.BREAK
        }
        keys.add(key.value)
      }
      return undefined
    },
  })
  return mistakes.all.length > length
}

/** Expands aliases, up to a limit. */
function plain(document: Document, mistakes: Mistakes): unknown {
  try {
    return document.toJS({ maxAliasCount: 50 })
  } catch (cause) {
    mistakes.say('', cause instanceof Error ? cause.message : String(cause))
    return undefined
  }
}

/** A location in the file, to report mistakes at. */
class YamlLocation {
  readonly #document: Document
  readonly #lines: LineCounter
  readonly #mistakes: Mistakes
  readonly #path: readonly (string | number)[]

  constructor(
    document: Document,
    lines: LineCounter,
    mistakes: Mistakes,
    path: readonly (string | number)[],
  ) {
    this.#document = document
    this.#lines = lines
    this.#mistakes = mistakes
    this.#path = path
  }

  in(...path: readonly (string | number)[]): YamlLocation {
    return new YamlLocation(this.#document, this.#lines, this.#mistakes, [...this.#path, ...path])
  }

  readonly wrong = (what: string): void => {
    const [filter, ...within] = this.#path
    this.#mistakes.say(
      [`line ${this.#line()}`, `filter ${Number(filter) + 1}`, ...within].join(', '),
      what,
    )
  }

  get mistakes(): number {
    return this.#mistakes.all.length
  }

  /** The line of the node at this location, or of its nearest parent. */
  #line(): number {
    for (let length = this.#path.length; length >= 0; length--) {
      const node = this.#document.getIn(this.#path.slice(0, length), true) as
        { readonly range?: readonly [number, number, number] | null } | undefined
      if (node?.range) return this.#lines.linePos(node.range[0]).line
    }
    return 1
  }
}

/** One filter of the file. */
class Declaration {
  readonly #location: YamlLocation
  readonly #roots = new Set<Variable>()

  constructor(location: YamlLocation) {
    this.#location = location
  }

  /** `undefined` where it has a mistake. */
  read(fields: unknown): FilterDefinition | undefined {
    const { wrong, mistakes } = this.#location
    if (!isFields(fields)) {
      wrong(`must declare a filter, not ${printed(fields)}`)
      return undefined
    }
    checkKeys(fields, keys, wrong)
    checkName(fields['name'], wrong)
    const { onError = 'pass', group = '', verbs = defaultVerbs } = fields
    checkOnError(onError, wrong)
    const rule = { components: fields['components'], resources: fields['resources'], group, verbs }
    if (!checkRule(rule, wrong)) return undefined
    const objects = resourceShapes(rule)
    const when = this.#expression(fields['when'], ['bool'], objects, this.#location.in('when'))
    const then = this.#then(fields['then'], objects)
    if (!when || !then || this.#location.mistakes > mistakes) return undefined
    const applies = isOfResources(objects)
    const needs = [...this.#roots]
    return {
      name: fields['name'] as string,
      rules: [rule],
      onError: onError as 'pass' | 'withhold',
      needs,
      awaits: needs,
      create: (inputs) => {
        const missing = needs.filter((name) => inputs[name] === undefined)
        if (missing.length > 0) return failing(applies, missing)
        const { node, pool } = inputs
        return judging(applies, { node: jsonOf(node), pool: jsonOf(pool) }, when, then)
      },
    }
  }

  #expression(
    text: unknown,
    types: readonly string[] | undefined,
    objects: readonly ResourceShapes[],
    location: YamlLocation,
  ): Program | undefined {
    if (typeof text !== 'string') {
      location.wrong(`must be an expression in CEL, not ${printed(text)}`)
      return undefined
    }
    let program: Program | undefined
    const said = new Set<string>()
    for (const { resource, versions } of objects) {
      const compiled = compile(
        text,
        types,
        versions.map(({ shape }) => shape),
      )
      if ('program' in compiled) program = compiled.program
      else
        for (const { what, at } of compiled.mistakes) {
          if (said.has(what)) continue
          said.add(what)
          location.wrong(`character ${at + 1}: ${what} (${resource})`)
        }
    }
    for (const root of program?.variables ?? []) this.#roots.add(root)
    return program
  }

  #then(
    then: unknown,
    objects: readonly ResourceShapes[],
  ): 'withhold' | DeclaredEdit[] | undefined {
    const location = this.#location.in('then')
    if (then === 'withhold') return then
    if (!Array.isArray(then) || then.length === 0 || then.length > mostEdits) {
      location.wrong(
        `must be withhold or a list of at most ${mostEdits} edits, not ${printed(then)}`,
      )
      return undefined
    }
    return then.flatMap((fields: unknown, at) => this.#edit(fields, objects, location.in(at)) ?? [])
  }

  #edit(
    fields: unknown,
    objects: readonly ResourceShapes[],
    location: YamlLocation,
  ): DeclaredEdit | undefined {
    if (!isFields(fields) || 'set' in fields === 'remove' in fields) {
      location.wrong(
        'must be { set: PATH, value: CONSTANT }, { set: PATH, expression: CEL } or { remove: PATH }',
      )
      return undefined
    }
    const op = 'set' in fields ? 'set' : 'remove'
    checkKeys(fields, op === 'set' ? ['set', 'value', 'expression'] : ['remove'], location.wrong)
    const text = fields[op]
    const path = typeof text === 'string' ? parsePath(text) : undefined
    if (!path) {
      location.wrong(
        `${printed(text)} is no path such as spec.ports[*].name or metadata.labels['a.example/b']`,
      )
      return undefined
    }
    const edit: DeclaredEdit | undefined =
      op === 'remove' ? { op, path } : this.#set(path, fields, objects, location)
    if (!edit) return undefined
    for (const known of objects) {
      const why = whyImpossible(edit, known)
      if (why !== undefined) location.wrong(`${String(text)}: ${why} (${known.resource})`)
    }
    return edit
  }

  #set(
    path: DeclaredEdit['path'],
    fields: Fields,
    objects: readonly ResourceShapes[],
    location: YamlLocation,
  ): DeclaredEdit | undefined {
    if ('value' in fields === 'expression' in fields) {
      location.wrong('a set takes either a value or an expression')
      return undefined
    }
    const value =
      'expression' in fields
        ? this.#expression(fields['expression'], undefined, objects, location.in('expression'))
        : constantOf(fields['value'] as Json)
    if (value !== undefined) return { op: 'set', path, value }
    if ('value' in fields) location.wrong('a field cannot be set to null: remove it')
    return undefined
  }
}

/** Facts as plain JSON, without unknown members. */
const jsonOf = (facts: object | null | undefined): Json | undefined =>
  facts === undefined ? undefined : (JSON.parse(JSON.stringify(facts)) as Json)

/** A filter whose variables are not available here: `onError` decides on each object. */
const failing =
  (applies: (cursor: Cursor) => boolean, missing: readonly string[]): Filter =>
  (object) => {
    if (!applies(object)) return 'leave'
    throw new Error(`${missing.join(' and ')} is not available on this node`)
  }

function judging(
  applies: (cursor: Cursor) => boolean,
  known: VariableValues,
  when: Program,
  then: 'withhold' | readonly DeclaredEdit[],
): Filter {
  return (cursor: Cursor) => {
    if (!applies(cursor)) return 'leave'
    const holds = when.evaluate(cursor, known)
    if (holds === false) return 'leave'
    if (holds instanceof Failure) throw new Error(holds.reason)
    if (holds !== true) throw new Error(`the condition has type ${typeOf(holds)}, not bool`)
    return then === 'withhold' ? then : then.map((edit): Edit => editFor(edit, cursor, known))
  }
}
