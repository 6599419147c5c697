import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isLater, LaterSchema, versionOf } from './schema.ts'
import { databaseFile } from './store-directory.ts'

const busyMs = 10_000

/**
 * Why this release could not use the store in `directory`: a later one wrote it. `undefined` where
 * it could, where there is none, and where it cannot be read.
 */
export function whyLater(directory: string): string | undefined {
  const path = join(directory, databaseFile)
  if (!existsSync(path)) return undefined
  try {
    using db = new DatabaseSync(path, { readOnly: true, timeout: busyMs })
    return isLater(db) ? new LaterSchema(versionOf(db), path).message : undefined
  } catch {
    return undefined
  }
}
