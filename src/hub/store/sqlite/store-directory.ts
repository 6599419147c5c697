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
import { lockDirectory } from './lock.ts'
import type { WriterOptions } from './messages.ts'
import { openReads } from './open-reads.ts'
import type { Reads } from './reads.ts'
import { Seal } from './seal.ts'
import type { ReportFault } from './faults.ts'
import { startWriter } from './writer-thread.ts'

export const databaseFile = 'objects.db'

/** A writer that has the database open. */
export interface OpenWriter {
  readonly worker: Worker
  /** The read connection from now on; `undefined`: as before. */
  readonly reads?: Reads
}

export interface DirectoryHooks {
  readonly report: ReportFault
  /** Called before a writer is started, which cleans up after the last one. */
  readonly onStarting: () => void
}

/** The directory of the store: locks it, and prepares the database for the first writer. */
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
   * Starts a writer. The first one also sets a database aside that cannot be used, which is
   * reported, and opens the database for reading. Rejects with a `StoreFailure` where there is no
   * writing, and where another store has the directory (the cause is a `DirectoryInUse` then); may
   * be called again.
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
      // Without a reader the writer is of no use, and would block the next attempt.
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
        new StoreFailure(
          'the sealing key has changed: secrets and tokens sealed with the old one are deleted',
        ),
      )
    }
    return opened.worker
  }

  /** Locks the directory before it touches anything: another process may use it. */
  #hold(): void {
    this.#held ??= attempt(() => {
      makeFolder(this.#directory, 0o700)
      // The directory may be a symbolic link, to a larger disk.
      restrictMode(realpathSync(this.#directory), 0o700)
      return lockDirectory(this.#directory)
    })
  }

  [Symbol.dispose](): void {
    this.#held?.[Symbol.dispose]()
    this.#held = undefined
  }
}

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants

/** The message for a database of a later release. */
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

/** SQLite gives its other files the mode of the database. */
function createClosed(path: string): void {
  closeSync(openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600))
  for (const each of [path, `${path}-wal`, `${path}-shm`])
    if (lstatSync(each, { throwIfNoEntry: false })) restrictMode(each, 0o600)
}

/** Keeps only the last database set aside. Returns its path. */
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
