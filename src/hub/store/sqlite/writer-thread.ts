import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { after, elapsed } from '../../../base/clock.ts'
import { StoreFailure } from '../store.ts'
import type { WriterOpened, WriterOptions } from './messages.ts'

export type Started =
  | Exclude<WriterOpened, { ok: true }>
  | (Extract<WriterOpened, { ok: true }> & { readonly worker: Worker })

/** Resolves when the writer has opened the database, or has failed to and ended. */
export function startWriter(options: WriterOptions): Promise<Started> {
  const writer = new URL(`./writer${extname(import.meta.url)}`, import.meta.url)
  // The process's preloaded modules are not for this thread.
  const worker = new Worker(writer, { workerData: options, name: 'store-writer', execArgv: [] })
  return new Promise((resolve) => {
    let said: WriterOpened | undefined
    const failed = (message: string): Started => ({ ok: false, unusable: false, message })
    const onError = (cause: Error): void => resolve(failed(cause.message))
    const onExit = (): void => resolve(said?.ok === false ? said : failed('the writer has ended'))
    worker.once('error', onError)
    worker.once('exit', onExit)
    worker.once('message', (opened: WriterOpened) => {
      said = opened
      if (!opened.ok) return
      worker.off('error', onError)
      worker.off('exit', onExit)
      resolve({ ...opened, worker })
    })
  })
}

/** Delay before the next writer is started: four times as long after each failure in a row. */
const firstDelayMs = 100
const longestDelayMs = 30_000
/** A writer that lived this long has not ended for its predecessor's reason. */
const calmMs = 10 * 60_000

export interface WriterHooks<OpenWriter> {
  /** It ended unexpectedly, or failed to start. Its unanswered writes are lost. */
  readonly onEnded: (failure: StoreFailure) => void
  readonly onStarted: (writer: OpenWriter) => void
}

/**
 * The writer thread. It is started again whenever it ends, ever less often but without end, as the
 * disk may be the cause.
 */
export class WriterThread<
  OpenWriter extends { readonly worker: Worker },
> implements AsyncDisposable {
  readonly #openWriter: () => Promise<OpenWriter>
  readonly #hooks: WriterHooks<OpenWriter>
  #worker: Worker | undefined
  #startedAt = elapsed()
  #restarts = 0
  #next: Disposable | undefined
  #starting: Promise<void> | undefined
  #closed = false

  /**
   * `first`: a writer, or why there is none yet. `openWriter` starts another, or rejects with a
   * `StoreFailure`.
   */
  constructor(
    first: OpenWriter | StoreFailure,
    openWriter: () => Promise<OpenWriter>,
    hooks: WriterHooks<OpenWriter>,
  ) {
    this.#openWriter = openWriter
    this.#hooks = hooks
    if (first instanceof StoreFailure) this.#ended(first)
    else this.#has(first)
  }

  #has(writer: OpenWriter): void {
    this.#worker = writer.worker
    this.#startedAt = elapsed()
    this.#follow(writer.worker)
    this.#hooks.onStarted(writer)
  }

  #follow(worker: Worker): void {
    let cause: unknown
    worker.on('error', (error) => (cause = error))
    worker.once('exit', (code) => {
      if (this.#closed) return
      this.#ended(new StoreFailure('the writer has ended', { cause: cause ?? { code } }))
    })
  }

  #ended(failure: StoreFailure): void {
    this.#hooks.onEnded(failure)
    if (elapsed() - this.#startedAt >= calmMs) this.#restarts = 0
    this.#next = after(Math.min(firstDelayMs * 4 ** this.#restarts, longestDelayMs), () => {
      this.#starting = this.#start()
    })
    this.#restarts += 1
  }

  async #start(): Promise<void> {
    try {
      const writer = await this.#openWriter()
      if (this.#closed) this.#worker = writer.worker
      else this.#has(writer)
    } catch (failure) {
      if (!(failure instanceof StoreFailure)) throw failure
      this.#startedAt = elapsed()
      if (!this.#closed) this.#ended(failure)
    }
  }

  /**
   * Resolves when the writer has committed everything and ended. Nothing may be sent to it any
   * more.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    this.#next?.[Symbol.dispose]()
    await this.#starting
    const worker = this.#worker
    if (!worker || worker.threadId < 0) return
    const ended = new Promise((resolve) => worker.once('exit', resolve))
    worker.ref()
    worker.postMessage('close')
    await ended
  }
}
