import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { after, elapsed } from '../../base/clock.ts'
import { StoreFailure } from '../store.ts'
import type { Opened, WriterOptions } from './messages.ts'

export type Started =
  Exclude<Opened, { ok: true }> | (Extract<Opened, { ok: true }> & { readonly worker: Worker })

/** Resolves when the database is open to it, or is known not to open; a writer that said no has ended. */
export function startWriter(options: WriterOptions): Promise<Started> {
  const writer = new URL(`./writer${extname(import.meta.url)}`, import.meta.url)
  // What the process preloads is not for this thread, and would be loaded once more.
  const worker = new Worker(writer, { workerData: options, name: 'store-writer', execArgv: [] })
  return new Promise((resolve) => {
    let said: Opened | undefined
    const failed = (message: string): Started => ({ ok: false, unusable: false, message })
    const onError = (cause: Error): void => resolve(failed(cause.message))
    const onExit = (): void => resolve(said?.ok === false ? said : failed('the writer has ended'))
    worker.once('error', onError)
    worker.once('exit', onExit)
    worker.once('message', (opened: Opened) => {
      said = opened
      if (!opened.ok) return
      worker.off('error', onError)
      worker.off('exit', onExit)
      resolve({ ...opened, worker })
    })
  })
}

/** How often a writer that ends is started again, and how long after: four times as long each time. */
const mostRestarts = 8
const firstDelayMs = 100
/** One that has lived for so long has not ended for the reason its predecessor did. */
const calmMs = 10 * 60_000

export interface WriterHooks {
  /** It ended by itself. Everything it had not answered is lost. */
  readonly onEnded: (failure: StoreFailure) => void
  /** Another one is about to be started, which puts right what the last one left. */
  readonly onStarting: () => void
  readonly onStarted: (worker: Worker) => void
}

/** The thread that writes: started again when it ends by itself, though not for ever. */
export class WriterThread implements AsyncDisposable {
  readonly #options: WriterOptions
  readonly #hooks: WriterHooks
  #worker: Worker
  #startedAt = elapsed()
  #restarts = 0
  #next: Disposable | undefined
  #starting: Promise<void> | undefined
  #closed = false

  constructor(worker: Worker, options: WriterOptions, hooks: WriterHooks) {
    this.#options = options
    this.#hooks = hooks
    this.#worker = worker
    this.#follow(worker)
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
    if (this.#restarts === mostRestarts) return
    this.#next = after(firstDelayMs * 4 ** this.#restarts, () => {
      this.#starting = this.#start()
    })
    this.#restarts += 1
  }

  async #start(): Promise<void> {
    this.#hooks.onStarting()
    const started = await startWriter(this.#options)
    this.#startedAt = elapsed()
    if (!started.ok) {
      if (!this.#closed) this.#ended(new StoreFailure('no writer', { cause: started.message }))
      return
    }
    this.#worker = started.worker
    if (this.#closed) return
    this.#follow(started.worker)
    this.#hooks.onStarted(started.worker)
  }

  /** Resolves when everything is written down and closed. Nothing may be sent to the writer any more. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    this.#next?.[Symbol.dispose]()
    await this.#starting
    if (this.#worker.threadId < 0) return
    const ended = new Promise((resolve) => this.#worker.once('exit', resolve))
    this.#worker.ref()
    this.#worker.postMessage('close')
    await ended
  }
}
