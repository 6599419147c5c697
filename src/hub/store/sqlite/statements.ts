import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite'

export type Row = readonly SQLOutputValue[]

/** A prepared statement whose rows are arrays: objects cost as much again as the read. */
export interface Statement {
  /** Returns how many rows it has changed. */
  run(...values: SQLInputValue[]): number
  get(...values: SQLInputValue[]): Row | undefined
  all(...values: SQLInputValue[]): readonly Row[]
}

export function prepare(db: DatabaseSync, sql: string): Statement {
  const statement = db.prepare(sql)
  statement.setReturnArrays(true)
  // The types of node:sqlite have rows as records only.
  return {
    run: (...values) => Number(statement.run(...values).changes),
    get: (...values) => statement.get(...values) as unknown as Row | undefined,
    all: (...values) => statement.all(...values) as unknown as readonly Row[],
  }
}
