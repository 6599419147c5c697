import type { Cursor, Path } from '../../../api/codec/cursor.ts'
import type { Json } from '../../../api/kube/json.ts'
import { Failure, keysOf, fromJson, listOf, type List, type Value } from './value.ts'

/**
 * What one evaluation may take: a predicate of ten steps for each of a thousand endpoints, and as
 * much again four times.
 */
export const mostSteps = 50_000

/** Text is gone through as fast as sixty-four characters a step. */
export const charactersAStep = 64

/** Keys of a map are gathered as fast as four a step. */
export const keysAStep = 4

/** The longest text that an expression may make. */
export const longestText = 64 * 1024

/** An expression that would go on for too long: nothing catches this within it. */
class TooCostly extends Error {
  readonly code = 'TOO_COSTLY'
}

/** What expressions know besides the object. */
export interface VariableValues {
  readonly node: Json | undefined
  readonly pool: Json | undefined
}

/** One object's evaluation: what it has read of it, and what it has spent. */
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

  /** Throws where the evaluation has gone on for long enough. */
  spend(steps: number): void {
    this.#steps -= steps
    if (this.#steps < 0) throw new TooCostly(`the expression takes more than ${mostSteps} steps`)
  }

  spendOnText(...texts: readonly string[]): void {
    this.spend(1 + texts.reduce((sum, { length }) => sum + length, 0) / charactersAStep)
  }

  /** The keys of a map, which are gathered anew each time; `undefined` where the value is none. */
  keysOf(value: Value): readonly Value[] | undefined {
    const keys = keysOf(value)
    if (keys) this.spend(keys.length / keysAStep)
    return keys
  }

  /** What a comprehension goes through: the elements of a list, the keys of a map. */
  rangeOf(value: Value): List | undefined {
    const list = listOf(value)
    if (list) return list
    const keys = this.keysOf(value)
    return keys && { length: keys.length, at: (index) => keys[index] ?? null }
  }

  /** Whether the object has anything at a path; nothing is decoded for it. */
  has(path: Path): boolean {
    return this.#cursor.has(path)
  }

  /** What the object has at a path, read once; `path` is known by its identity. */
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
