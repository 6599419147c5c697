import {
  closeSync,
  constants,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { now } from '../../../base/clock.ts'
import { restrictMode } from '../../../base/file-mode.ts'
import { makeFolder } from '../../../base/folder.ts'
import { StoreFailure } from '../store.ts'
import { lock } from './lock.ts'
import type { WriterOptions } from './messages.ts'
import { openReads } from './open-reads.ts'
import type { Reads } from './reads.ts'
import { Seal } from './seal.ts'
import type { ReportFault } from './faults.ts'
import { startWriter } from './writer-thread.ts'

export const databaseFile = 'objects.db'
const lockFile = 'lock.db'

/** What there is once the database is open to a writer. */
export interface OpenWriter {
  readonly worker: Worker
  /** What this thread reads through from now on; `undefined`: as before. */
  readonly reads?: Reads
}

export interface DirectoryHooks {
  readonly report: ReportFault
  /** Another writer is about to be started, which puts right what the last one left. */
  readonly onStarting: () => void
}

/**
 * The store's folder: held against other processes, and its database put in order for the first
 * writer.
 */
export class StoreDirectory implements Disposable {
  readonly #directory: string
  readonly #options: WriterOptions
  readonly #hooks: DirectoryHooks
  #held: Disposable | undefined
  #isInOrder = false

  constructor(directory: string, options: WriterOptions, hooks: DirectoryHooks) {
    this.#directory = directory
    this.#options = options
    this.#hooks = hooks
  }

  /**
   * Starts a writer; on the first success also sets aside a database that cannot be used, which is
   * reported, and opens it for reading. Rejects with a `StoreFailure` where there is no writing,
   * and where another store has the folder (`Taken` is the cause then); may be called again.
   */
  async openWriter(): Promise<OpenWriter> {
    this.#hold()
    if (this.#isInOrder) return { worker: await this.#write() }
    attempt(() => createClosed(this.#options.path))
    const worker = await this.#write({ settingAside: true })
    try {
      const reads = openReads(this.#options.path, new Seal(this.#options.sealingKey))
      this.#isInOrder = true
      return { worker, reads }
    } catch (cause) {
      // A writer without a reader is of no use, and would keep what the next attempt needs.
      await worker.terminate()
      throw failed(cause)
    }
  }

  async #write({ settingAside = false } = {}): Promise<Worker> {
    this.#hooks.onStarting()
    let opened = await startWriter(this.#options)
    if (!opened.ok && opened.unusable && settingAside) {
      const kept = attempt(() => {
        const path = setAside(this.#directory)
        createClosed(this.#options.path)
        return path
      })
      const said = `${this.#options.path} cannot be used and is now ${kept}: the cache begins empty`
      this.#hooks.report('set-aside', new StoreFailure(said, { cause: opened }))
      opened = await startWriter(this.#options)
    }
    if (!opened.ok && opened.later) throw new StoreFailure(written(this.#options.path, opened))
    if (!opened.ok) throw new StoreFailure(`${saying}: ${opened.message}`, { cause: opened })
    if (opened.resealed) {
      this.#hooks.report(
        'resealed',
        new StoreFailure('the key is another one: what was sealed is forgotten'),
      )
    }
    return opened.worker
  }

  /** Before anything else is touched: what lies there may be in use. */
  #hold(): void {
    this.#held ??= attempt(() => {
      makeFolder(this.#directory, 0o700)
      // The folder itself may be a link, to a larger disk.
      restrictMode(realpathSync(this.#directory), 0o700)
      return lock(join(this.#directory, lockFile))
    })
  }

  [Symbol.dispose](): void {
    this.#held?.[Symbol.dispose]()
    this.#held = undefined
  }
}

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants

/** What was written by a later release is left to it. */
const written = (path: string, { message }: { readonly message: string }): string =>
  `${path} was written by a later release: ${message}. It is left as it is. Start the release that wrote it; or move the file away, and this one begins with an empty cache`

const saying = 'the store cannot be opened'

const failed = (cause: unknown): StoreFailure =>
  new StoreFailure(`${saying}: ${cause instanceof Error ? cause.message : String(cause)}`, {
    cause,
  })

function attempt<T>(act: () => T): T {
  try {
    return act()
  } catch (cause) {
    throw failed(cause)
  }
}

/** SQLite gives its other files the mode that the database has. */
function createClosed(path: string): void {
  closeSync(openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600))
  for (const each of [path, `${path}-wal`, `${path}-shm`])
    if (lstatSync(each, { throwIfNoEntry: false })) restrictMode(each, 0o600)
}

/** The last one set aside is kept, for whoever wants to look. Returns its path. */
function setAside(directory: string): string {
  for (const name of readdirSync(directory)) {
    if (name.startsWith(`${databaseFile}.unusable-`)) rmSync(join(directory, name), { force: true })
  }
  const mark = `unusable-${new Date(now()).toISOString().replaceAll(':', '')}`
  for (const suffix of ['', '-wal', '-shm']) {
    const path = join(directory, databaseFile + suffix)
    if (existsSync(path)) renameSync(path, join(directory, `${databaseFile}.${mark}${suffix}`))
  }
  return join(directory, `${databaseFile}.${mark}`)
}
