import {
  Environment,
  ParseError,
  TypeError as CelTypeError,
  type ASTNode,
} from '@marcbachmann/cel-js'
import type { Cursor } from '../../../api/codec/cursor.ts'
import { Compiler, type CelMistake, type Variable } from './compile.ts'
import { Evaluation, type VariableValues } from './evaluation.ts'
import { any, type Shape } from './shape.ts'
import type { Value } from './value.ts'

/** The longest expression that is read, in characters. */
export const longestExpression = 4096

/** Each node is gone through at least once for an object, and recursively. */
export const parserLimits = {
  maxAstNodes: 500,
  maxDepth: 32,
  maxListElements: 100,
  maxMapEntries: 32,
  maxCallArguments: 8,
}

/**
 * The parser and the types are the library's; what an expression costs is bounded by our own
 * evaluation.
 */
const environment = new Environment({ limits: parserLimits, homogeneousAggregateLiterals: false })
  .registerVariable('object', 'dyn')
  .registerVariable('node', 'dyn')
  .registerVariable('pool', 'dyn')

/** An expression that is ready to be evaluated. */
export interface Program {
  /** What it speaks of besides the object. */
  readonly variables: ReadonlySet<Variable>
  /** What it comes to for an object; throws where it would cost too much. */
  evaluate(cursor: Cursor, known: VariableValues): Value
}

export type Compiled = { readonly program: Program } | { readonly mistakes: readonly CelMistake[] }

/**
 * Reads an expression in CEL over `object`, `node` and `pool`, which is to come to a value of one
 * of `types`. `shapes` are what is known of the objects: all paths must be known in one of them.
 */
export function compile(
  text: string,
  types: readonly string[] | undefined,
  shapes: readonly Shape[],
): Compiled {
  if (text.length > longestExpression)
    return { mistakes: [{ what: `longer than ${longestExpression} characters`, at: 0 }] }
  const parsed = parse(text)
  if ('mistakes' in parsed) return parsed
  const { ast, type } = parsed
  if (types && type !== undefined && type !== 'dyn' && !types.includes(type))
    return { mistakes: [{ what: `comes to ${type} where ${types.join(' or ')} is wanted`, at: 0 }] }
  const found = shapes.map((shape) => mistakesOf(ast, shape))
  if (!found.some((mistakes) => mistakes.length === 0)) return { mistakes: found[0] ?? [] }
  // What is known of an object is checked by now; how it is read does not depend on it.
  const compiler = new Compiler(any)
  const run = compiler.value(ast)
  return {
    program: {
      variables: compiler.variables,
      evaluate: (cursor, known) => run(new Evaluation(cursor, known)),
    },
  }
}

function parse(
  text: string,
):
  | { readonly ast: ASTNode; readonly type: string | undefined }
  | { readonly mistakes: readonly CelMistake[] } {
  try {
    const parsed = environment.parse(text)
    // What is wrong by itself is told better by the compiler, which knows what there is.
    const own = mistakesOf(parsed.ast, any)
    if (own.length > 0) return { mistakes: own }
    const { valid, error, type } = parsed.check()
    if (valid) return { ast: parsed.ast, type }
    // The library's has() knows no positions in lists; what ours takes the compiler has seen.
    if (error?.code === 'invalid_macro_argument') return { ast: parsed.ast, type: undefined }
    return { mistakes: [mistakeOf(error)] }
  } catch (cause) {
    return { mistakes: [mistakeOf(cause)] }
  }
}

function mistakeOf(cause: unknown): CelMistake {
  if (cause instanceof ParseError || cause instanceof CelTypeError)
    return { what: cause.summary, at: cause.range?.start ?? 0 }
  if (cause instanceof RangeError) return { what: 'nested too deep', at: 0 }
  throw cause
}

function mistakesOf(ast: ASTNode, shape: Shape): readonly CelMistake[] {
  const compiler = new Compiler(shape)
  compiler.value(ast)
  return compiler.mistakes
}
