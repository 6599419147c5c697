import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { createInterface, type Interface } from 'node:readline'
import type { KubeObject } from '../kit/cluster/api-client.ts'
import type { Workspace } from '../kit/cluster/workspace.ts'

/** What one of client-go's reflectors holds, and how it came by it. */
export interface Held {
  /** Resource version by `namespace/name`. */
  readonly objects: Readonly<Record<string, string>>
  readonly resourceVersion: string
  /** Requests for all of a collection, by list and by WatchList. */
  readonly lists: number
  readonly watchLists: number
  /** Watches that went on from a version. */
  readonly watches: number
  /** How many watches began before the one before had lasted its time. */
  readonly early: number
}

export interface ReflectorsOptions {
  readonly program: string
  readonly kubeconfig: string
  readonly encoding: 'json' | 'protobuf'
  /** Whether they begin with a WatchList, as from client-go 0.35 on, or with a list. */
  readonly watchList: boolean
  /** Whether it is another component than the kubelet: its User-Agent. */
  readonly userAgent?: string
  /** Of all that it follows. */
  readonly labels?: string
  /** Resources, each with a field selector after `?` where it has one. */
  readonly follow: readonly string[]
}

/** A program with a reflector for each of some resources; its log lies in the workspace. */
export class Reflectors {
  readonly #child: ChildProcess
  readonly #lines: AsyncIterator<string>
  readonly #reader: Interface

  constructor(workspace: Workspace, { program, ...options }: ReflectorsOptions) {
    const name = `reflectors-${options.encoding}-${options.watchList ? 'watchlist' : 'list'}`
    const log = openSync(workspace.file(`${name}.log`), 'a')
    const child = spawn(
      program,
      [
        `--kubeconfig=${options.kubeconfig}`,
        `--encoding=${options.encoding}`,
        `--follow=${options.follow.join(',')}`,
        ...(options.userAgent === undefined ? [] : [`--user-agent=${options.userAgent}`]),
        ...(options.labels === undefined ? [] : [`--labels=${options.labels}`]),
      ],
      {
        stdio: ['pipe', 'pipe', log],
        env: { ...process.env, KUBE_FEATURE_WatchListClient: String(options.watchList) },
      },
    )
    closeSync(log)
    this.#child = child
    if (!child.stdout) throw new Error('the program has no output')
    this.#reader = createInterface({ input: child.stdout })
    this.#lines = this.#reader[Symbol.asyncIterator]()
  }

  /** What each holds now, by resource as it was named. */
  show(): Promise<Readonly<Record<string, Held>>> {
    return this.#ask('show')
  }

  /** All objects that each holds now, as client-go's types know them. */
  print(): Promise<Readonly<Record<string, readonly KubeObject[]>>> {
    return this.#ask('print')
  }

  /** The events of each one's watches so far, as `ADDED namespace/name 12`. */
  events(): Promise<Readonly<Record<string, readonly string[]>>> {
    return this.#ask('events')
  }

  async #ask<Answer>(order: string): Promise<Answer> {
    this.#child.stdin?.write(`${order}\n`)
    const line = await this.#lines.next()
    if (line.done === true) throw new Error('the reflectors have ended')
    return JSON.parse(line.value) as Answer
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const gone = once(this.#child, 'exit')
      this.#child.kill('SIGKILL')
      await gone
    }
    this.#reader.close()
  }
}
