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

/** The longest accepted expression, in characters. */
export const longestExpression = 4096

/** Each node is visited at least once per object, recursively. */
export const parserLimits = {
  maxAstNodes: 500,
  maxDepth: 32,
  maxListElements: 100,
  maxMapEntries: 32,
  maxCallArguments: 8,
}

/** The library parses and checks types; our own evaluation bounds the cost. */
const environment = new Environment({ limits: parserLimits, homogeneousAggregateLiterals: false })
  .registerVariable('object', 'dyn')
  .registerVariable('node', 'dyn')
  .registerVariable('pool', 'dyn')

/** A compiled expression. */
export interface Program {
  /** The variables that it uses besides the object. */
  readonly variables: ReadonlySet<Variable>
  /** Its value for an object. Throws where it exceeds its budget. */
  evaluate(cursor: Cursor, known: VariableValues): Value
}

export type Compiled = { readonly program: Program } | { readonly mistakes: readonly CelMistake[] }

/**
 * Compiles a CEL expression over `object`, `node` and `pool`, whose value must have one of `types`.
 * `shapes` describe the objects: one of them has to have all paths of the expression.
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
    return { mistakes: [{ what: `has type ${type}, but must be ${types.join(' or ')}`, at: 0 }] }
  const found = shapes.map((shape) => mistakesOf(ast, shape))
  if (!found.some((mistakes) => mistakes.length === 0)) return { mistakes: found[0] ?? [] }
  // The paths are checked by now; how they are read does not depend on the shape.
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
    // The compiler reports general mistakes better, as it knows what is available.
    const own = mistakesOf(parsed.ast, any)
    if (own.length > 0) return { mistakes: own }
    const { valid, error, type } = parsed.check()
    if (valid) return { ast: parsed.ast, type }
    // The library's has() rejects list indexes; the compiler has checked ours.
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
