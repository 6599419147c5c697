import type { Cursor, Path } from '../../../api/codec/cursor.ts'
import type { Json } from '../../../api/kube/json.ts'
import { Failure, keysOf, fromJson, listOf, type List, type Value } from './value.ts'

/**
 * The budget of one evaluation: a predicate of ten steps for each of a thousand endpoints, and as
 * much again four times.
 */
export const mostSteps = 50_000

/** The characters of text that one step covers. */
export const charactersAStep = 64

/** The map keys that one step covers. */
export const keysAStep = 4

/** The longest text that an expression may produce. */
export const longestText = 64 * 1024

/** An expression over its budget, which nothing within it can catch. */
class TooCostly extends Error {
  readonly code = 'TOO_COSTLY'
}

/** The values of the variables besides the object. */
export interface VariableValues {
  readonly node: Json | undefined
  readonly pool: Json | undefined
}

/** The evaluation for one object: the values read, and the budget spent. */
export class Evaluation {
  /** The variables of comprehensions, the innermost last. */
  readonly locals: Value[] = []
  readonly variables: VariableValues
  readonly #cursor: Cursor
  readonly #read = new Map<Path, Value | undefined>()
  #steps = mostSteps

  constructor(cursor: Cursor, known: VariableValues) {
    this.#cursor = cursor
    this.variables = known
  }

  /** Throws where the budget is exceeded. */
  spend(steps: number): void {
    this.#steps -= steps
    if (this.#steps < 0) throw new TooCostly(`the expression takes more than ${mostSteps} steps`)
  }

  spendOnText(...texts: readonly string[]): void {
    this.spend(1 + texts.reduce((sum, { length }) => sum + length, 0) / charactersAStep)
  }

  /** The keys of a map, collected anew each time; `undefined` where the value is none. */
  keysOf(value: Value): readonly Value[] | undefined {
    const keys = keysOf(value)
    if (keys) this.spend(keys.length / keysAStep)
    return keys
  }

  /** The range of a comprehension: the elements of a list, the keys of a map. */
  rangeOf(value: Value): List | undefined {
    const list = listOf(value)
    if (list) return list
    const keys = this.keysOf(value)
    return keys && { length: keys.length, at: (index) => keys[index] ?? null }
  }

  /** Whether the object has a value at a path, without decoding it. */
  has(path: Path): boolean {
    return this.#cursor.has(path)
  }

  /** The object's value at a path, read once for each `path` instance. */
  read(path: Path): Value | undefined {
    if (this.#read.has(path)) return this.#read.get(path)
    // Mostly a scalar, which is read without decoding anything beside it.
    const found = fromJson(this.#cursor.value(path) ?? this.#cursor.json(path))
    const value = Array.isArray(found) && found.length === 0 ? undefined : found
    this.#read.set(path, value)
    return value
  }
}

export const absent = (path: Path): Failure => new Failure(`no such key: ${path.join('.')}`)
