import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { isProgrammingError } from '../../base/expected-fault.ts'

export interface SocketQuery {
  readonly path: string
  /** The sockets to look for, as the kernel prints them: local address, a space, remote address. */
  readonly ends: readonly string[]
}

export type SocketQueryResult =
  { readonly lines: string } | { readonly code: string | undefined; readonly message: string }

/** The thread keeps no state between two reads. */
const resourceLimits = { maxYoungGenerationSizeMb: 1, stackSizeMb: 1 }

/** Also where the system has no room for the thread. A mistake in the program is its cause. */
class ThreadEnded extends Error {
  readonly code = 'SOCKET_TABLE_THREAD_ENDED'
  constructor(cause: unknown) {
    const why = cause instanceof Error ? `: ${cause.message}` : ''
    super(
      `the thread that reads the socket table has ended${why}`,
      isProgrammingError(cause) ? { cause } : {},
    )
  }
}

/**
 * Looks for sockets in the kernel's tables, in a thread of its own that starts with the first
 * query. A thread that exits fails its pending queries; the next query starts another.
 */
export class SocketTableThread implements AsyncDisposable {
  #worker: Worker | undefined
  /** In the order of the queries, in which the thread answers. */
  #pending: PromiseWithResolvers<string>[] = []

  /**
   * The lines that `establishedWith` finds in the table at `path`. Rejects with the system's error
   * code where the table cannot be read.
   */
  lines(path: string, ends: readonly string[]): Promise<string> {
    const answer = Promise.withResolvers<string>()
    this.#pending.push(answer)
    this.#worker ??= this.#start()
    this.#worker.postMessage({ path, ends } satisfies SocketQuery)
    return answer.promise
  }

  #start(): Worker {
    const reader = new URL(`./socket-table-reader${extname(import.meta.url)}`, import.meta.url)
    // The thread needs none of the modules that the process preloads.
    const worker = new Worker(reader, { name: 'socket-table', execArgv: [], resourceLimits })
    worker.unref()
    let cause: unknown
    worker.on('error', (error) => (cause = error))
    worker.once('exit', () => {
      if (this.#worker !== worker) return
      this.#worker = undefined
      for (const { reject } of this.#pending.splice(0)) reject(new ThreadEnded(cause))
    })
    worker.on('message', (result: SocketQueryResult) => {
      const answer = this.#pending.shift()
      if ('lines' in result) answer?.resolve(result.lines)
      else answer?.reject(Object.assign(new Error(result.message), { code: result.code }))
    })
    return worker
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker?.terminate()
  }
}
