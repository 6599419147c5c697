import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { ExitCode } from './command.ts'
import { keepCodeAtEnd } from './compiled-code.ts'
import type { StandardError } from './log.ts'

/**
 * How much longer than the grace period a graceful stop may take, to close the store and the like.
 */
export const closingMs = 4000

/** When a process that should have exited is killed. */
export const exitingMs = 3000

/** How long the last log lines may take. */
const lastLinesMs = 1000

/** Work of Node's thread pool: files, name servers. */
const inPool = /^(?:FSReq|GetAddrInfoReq|GetNameInfoReq)/

/**
 * Ends the process after its last log lines are written; exits with 1 if their reader does not take
 * them. A process that exits waits for its threads, and one may block for ever: on the log's
 * reader, a disk, a name server. Then the process execs a program that only exits with the code:
 * that ends all threads and, unlike SIGKILL, also works for the first process of a container.
 */
export async function endProcess(code: ExitCode, sink: StandardError): Promise<never> {
  const isWritten = await sink.written(lastLinesMs)
  if (code === 0) keepCodeAtEnd()
  if (
    code === 0 &&
    isWritten &&
    !process.getActiveResourcesInfo().some((each) => inPool.test(each))
  )
    process.exit(0)
  const self = process.platform === 'linux' ? '/proc/self/exe' : process.execPath
  const last = `process.exit(${isWritten ? code : 1})`
  // A pending SIGUSR1 stays pending in that program: without the option it would open its debugger.
  if (process.execve) process.execve(self, ['nodehub', '--disable-sigusr1', '-e', last], {})
  return process.exit(code)
}

/** Kills the process after `ms` from a thread of its own, even if the main thread is blocked. */
export function killLater(ms: number): void {
  const killer = new URL(`./killer${extname(import.meta.url)}`, import.meta.url)
  const resourceLimits = { maxYoungGenerationSizeMb: 1, stackSizeMb: 1 }
  const worker = new Worker(killer, {
    workerData: ms,
    name: 'killer',
    execArgv: [],
    resourceLimits,
  })
  // Without the thread everything else works.
  worker.on('error', () => undefined)
  worker.unref()
}
