import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'

export interface Asked {
  readonly path: string
  /** Of the sockets that are looked for, as the kernel prints them: local, a space, remote. */
  readonly ends: readonly string[]
}

export type Found =
  { readonly lines: string } | { readonly code: string | undefined; readonly message: string }

/** It keeps nothing between two readings. */
const resourceLimits = { maxYoungGenerationSizeMb: 1, stackSizeMb: 1 }

/**
 * Looks for sockets in the kernel's tables, in a thread of its own that begins with the first
 * question. A thread that ends by itself fails what it was asked; the next question begins another.
 */
export class TableThread implements AsyncDisposable {
  #worker: Worker | undefined
  /** In the order in which they were asked, which is that of the answers. */
  #waiting: PromiseWithResolvers<string>[] = []

  /**
   * What `establishedWith` finds in the table at `path`. Rejects where it cannot be read, with the
   * code of the failure.
   */
  lines(path: string, ends: readonly string[]): Promise<string> {
    const answer = Promise.withResolvers<string>()
    this.#waiting.push(answer)
    this.#worker ??= this.#start()
    this.#worker.postMessage({ path, ends } satisfies Asked)
    return answer.promise
  }

  #start(): Worker {
    const reader = new URL(`./table-reader${extname(import.meta.url)}`, import.meta.url)
    // What the process preloads is not for this thread.
    const worker = new Worker(reader, { name: 'socket-table', execArgv: [], resourceLimits })
    worker.unref()
    let cause: unknown
    worker.on('error', (error) => (cause = error))
    worker.once('exit', () => {
      if (this.#worker !== worker) return
      this.#worker = undefined
      for (const { reject } of this.#waiting.splice(0))
        reject(new Error('the thread that reads the socket table has ended', { cause }))
    })
    worker.on('message', (found: Found) => {
      const answer = this.#waiting.shift()
      if ('lines' in found) answer?.resolve(found.lines)
      else answer?.reject(Object.assign(new Error(found.message), { code: found.code }))
    })
    return worker
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker?.terminate()
  }
}
