import { mkdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { writeDurablySync } from '../../src/base/durable-file.ts'
import type { Workspace } from './cluster/workspace.ts'
import { Hopeless, until } from './until.ts'

/** Names a folder that ends with the run; absent where a test file runs by itself. */
export const runFolderVariable = 'NODEHUB_TEST_RUN'

/**
 * Has `make` fill a folder, once for all test files of a run: the first to ask makes it, and the
 * others wait until it is made. Rejects for all of them where it cannot be made. Resolves to the
 * folder, which is of the workspace where the file runs by itself.
 */
export const onceInARun = (
  workspace: Workspace,
  name: string,
  make: (folder: string) => Promise<void>,
): Promise<string> => filled(join(process.env[runFolderVariable] ?? workspace.path, name), make)

/** The same, but `undefined` where the file runs by itself. */
export async function filledOnceInARun(
  name: string,
  make: (folder: string) => Promise<void>,
): Promise<string | undefined> {
  const run = process.env[runFolderVariable]
  return run === undefined ? undefined : filled(join(run, name), make)
}

async function filled(folder: string, make: (folder: string) => Promise<void>): Promise<string> {
  const outcome = `${folder}.outcome`
  try {
    mkdirSync(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    const read = () => readFileSync(outcome, 'utf8')
    const said = await until(`${basename(folder)} of another test`, read, { seconds: 240 })
    if (said !== made) throw new Hopeless(said)
    return folder
  }
  try {
    await make(folder)
    // Whole from the moment at which it is there.
    writeDurablySync(outcome, made)
  } catch (error) {
    writeDurablySync(outcome, `another test could not make ${basename(folder)}: ${String(error)}`)
    throw error
  }
  return folder
}

const made = 'made'
