/**
 * To be imported before a test file's own modules. A hub in this process starts its threads from
 * their bundles, where the run has some (bundles.ts): of a thread's start, a third is to find and
 * read its modules.
 */
import { existsSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { basename, join } from 'node:path'
import threads from 'node:worker_threads'
import { bundlesVariable } from '../kit/hub-programs.ts'

const bundles = process.env[bundlesVariable]

/** `src/cli/killer.ts` is in `killer.js`. */
function bundleOf(thread: string | URL): string | URL {
  if (bundles === undefined || !/\/src\/.*\.ts$/.test(String(thread))) return thread
  const bundle = join(bundles, `${basename(String(thread), '.ts')}.js`)
  return existsSync(bundle) ? bundle : thread
}

threads.Worker = class extends threads.Worker {
  constructor(thread: string | URL, options?: threads.WorkerOptions) {
    super(bundleOf(thread), options)
  }
}
syncBuiltinESMExports()
