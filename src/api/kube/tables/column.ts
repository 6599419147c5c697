import type { Json, JsonObject } from '../json.ts'
import { textAt, valueAt } from '../json-at.ts'
import { ageOf } from './age.ts'

/** One column of a Table, and how a row gets its cell. */
export interface Column {
  readonly name: string
  readonly type: string
  readonly format: string
  /** Of columns of custom resources alone. */
  readonly description: string
  /** 0: always shown; 1: added by `kubectl get -o wide`. */
  readonly priority: number
  readonly cell: (object: JsonObject) => Json
}

export const none = '<none>'
export const unset = '<unset>'

export const column = (
  name: string,
  cell: Column['cell'],
  { type = 'string', priority = 0 } = {},
): Column => ({
  name,
  type,
  format: name === 'Name' ? 'name' : '',
  description: '',
  priority,
  cell,
})

/** A column that `kubectl get -o wide` adds. */
export const wide = (name: string, cell: Column['cell']): Column =>
  column(name, cell, { priority: 1 })

export const integer = (name: string, cell: Column['cell']): Column =>
  column(name, cell, { type: 'integer' })

/** Reads the text at a path; '' where there is none. */
export const text =
  (...path: string[]) =>
  (object: JsonObject): Json =>
    textAt(object, ...path)

/** Reads the text at a path; `otherwise` where there is none. */
export const textOr =
  (otherwise: string, ...path: string[]) =>
  (object: JsonObject): Json =>
    textAt(object, ...path) || otherwise

/** Reads the number at a path; 0 where there is none. */
export const number =
  (...path: string[]) =>
  (object: JsonObject): Json =>
    valueAt(object, ...path) ?? 0

/** How long ago the time at a path was. */
const age =
  (...path: string[]) =>
  (object: JsonObject): Json =>
    ageOf(valueAt(object, ...path))

/** A bookmark has none. */
export const nameColumn = column('Name', text('metadata', 'name'))

export const ageColumn = column('Age', age('metadata', 'creationTimestamp'))
