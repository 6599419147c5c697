import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { ExitCode } from './command.ts'
import type { StandardError } from './log.ts'

/** How long the last lines may take to be written. */
const lastLinesMs = 1000

/** What a thread of Node's pool is at work for: a file, a name server. */
const inPool = /^(?:FSReq|GetAddrInfoReq|GetNameInfoReq)/

/**
 * Ends the process, with its last lines written where their reader takes them, and with 1 where it
 * does not. A process that exits waits for its threads, and one of them may wait for ever: for the
 * reader of its log, a disk, a name server. Where one may, the process goes over to a program that
 * does nothing but exit with the code: that ends all threads, and, other than SIGKILL, also the
 * first process of a container.
 */
export async function endProcess(code: ExitCode, sink: StandardError): Promise<never> {
  const isWritten = await sink.written(lastLinesMs)
  if (
    code === 0 &&
    isWritten &&
    !process.getActiveResourcesInfo().some((each) => inPool.test(each))
  )
    process.exit(0)
  const self = process.platform === 'linux' ? '/proc/self/exe' : process.execPath
  const last = `process.exit(${isWritten ? code : 1})`
  if (process.execve) process.execve(self, ['nodehub', '-e', last], {})
  return process.exit(code)
}

/**
 * Kills the process after `ms`, from a thread of its own, which needs no turn of the others. For
 * what else ends a process waits for a turn of its main thread.
 */
export function killLater(ms: number): void {
  const killer = new URL(`./killer${extname(import.meta.url)}`, import.meta.url)
  const resourceLimits = { maxYoungGenerationSizeMb: 1, stackSizeMb: 1 }
  const worker = new Worker(killer, {
    workerData: ms,
    name: 'killer',
    execArgv: [],
    resourceLimits,
  })
  // A thread that cannot be started leaves the rest as it is.
  worker.on('error', () => undefined)
  worker.unref()
}
