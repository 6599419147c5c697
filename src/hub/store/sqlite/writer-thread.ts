import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { after, elapsed } from '../../../base/clock.ts'
import { StoreFailure } from '../store.ts'
import type { WriterOpened, WriterOptions } from './messages.ts'

export type Started =
  | Exclude<WriterOpened, { ok: true }>
  | (Extract<WriterOpened, { ok: true }> & { readonly worker: Worker })

/**
 * Resolves when the database is open to it, or is known not to open; a writer that said no has
 * ended.
 */
export function startWriter(options: WriterOptions): Promise<Started> {
  const writer = new URL(`./writer${extname(import.meta.url)}`, import.meta.url)
  // What the process preloads is not for this thread, and would be loaded once more.
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

/**
 * How long after a writer has ended, or would not start, the next one is started: four times as
 * long each time.
 */
const firstDelayMs = 100
const longestDelayMs = 30_000
/** One that has lived for so long has not ended for the reason its predecessor did. */
const calmMs = 10 * 60_000

export interface WriterHooks<OpenWriter> {
  /** It ended by itself, or would not start. Everything it had not answered is lost. */
  readonly onEnded: (failure: StoreFailure) => void
  readonly onStarted: (writer: OpenWriter) => void
}

/**
 * The thread that writes: started again when it ends by itself, ever less often, but for ever, as
 * the disk may be what is to blame.
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
   * Resolves when everything is written down and closed. Nothing may be sent to the writer any
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
