import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Teardown } from './wire/wire.ts'

/**
 * An empty folder, gone with the test after the hub that uses it; tap's `testdir` goes before all
 * that is torn down.
 */
export function rootFolder(t: Teardown): string {
  const rootDir = mkdtempSync(join(tmpdir(), 'nodehub-test-'))
  // What is not waited for may still write a file while the folder is emptied.
  t.teardown(() => rmSync(rootDir, { recursive: true, force: true, maxRetries: 5 }))
  return rootDir
}

/** The paths of all files in a folder and in those below. */
export const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
