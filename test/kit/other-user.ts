import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import type { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'

/** A request as plain data. */
export interface RequestAs {
  readonly url: string
  /** Absent: GET. */
  readonly method?: string
  readonly headers: Readonly<Record<string, string>>
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
}

export interface AnswerAs {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body: string
}

/**
 * For each line of input, asks its requests on connections of their own, in turn, and prints the
 * answers on a line; without types, for it is handed over as text.
 */
const script = `
const { text } = require('node:stream/consumers')
const ask = ({ url, ...options }) =>
  new Promise((resolve, reject) => {
    const { get } = require(url.startsWith('https:') ? 'node:https' : 'node:http')
    get(url, { ...options, agent: false }, async (answer) =>
      resolve({ status: answer.statusCode, headers: answer.headers, body: await text(answer) })
    ).on('error', reject)
  })
require('node:readline').createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, asked } = JSON.parse(line)
  const answers = []
  for (const each of asked) answers.push(await ask(each))
  process.stdout.write(JSON.stringify({ id, answers }) + '\\n')
})
`

/**
 * The answers to requests of a process that belongs to `uid`; only root can start one for somebody
 * else. A user has one process for all that it asks.
 */
export async function requestAs(uid: number, asked: readonly RequestAs[]): Promise<AnswerAs[]> {
  const known = askers.get(uid)
  const asker = known ?? new Asker(uid)
  askers.set(uid, asker)
  return asker.ask(asked)
}

const askers = new Map<number, Asker>()

/** Ends with this process, which it does not keep alive unless it is being asked. */
class Asker {
  readonly #uid: number
  readonly #child: ChildProcess
  readonly #failed: Promise<never>
  readonly #waiting = new Map<number, (answers: AnswerAs[]) => void>()
  #count = 0

  constructor(uid: number) {
    this.#uid = uid
    this.#child = spawnAs(uid, script)
    const { stdin, stdout, stderr } = this.#child
    this.#failed = failureOf(uid, this.#child)
    void this.#failed.catch(() => askers.delete(this.#uid))
    if (stdout) createInterface({ input: stdout }).on('line', (line) => this.#hear(line))
    for (const pipe of [stdin, stderr, this.#child]) (pipe as { unref(): void }).unref()
  }

  async ask(asked: readonly RequestAs[]): Promise<AnswerAs[]> {
    const id = this.#count++
    const { promise, resolve } = Promise.withResolvers<AnswerAs[]>()
    this.#waiting.set(id, resolve)
    const stdout = this.#child.stdout as Socket
    stdout.ref()
    this.#child.stdin?.write(`${JSON.stringify({ id, asked })}\n`)
    try {
      return await Promise.race([promise, this.#failed])
    } finally {
      this.#waiting.delete(id)
      if (this.#waiting.size === 0) stdout.unref()
    }
  }

  #hear(line: string): void {
    const { id, answers } = JSON.parse(line) as { id: number; answers: AnswerAs[] }
    this.#waiting.get(id)?.(answers)
  }
}

export interface ProcessAs {
  readonly process: ChildProcess
  /** All it prints, once it has ended. */
  readonly output: Promise<string>
  /** Rejects with what it complains of when it ends other than well; never resolves. */
  readonly failed: Promise<never>
}

/**
 * A process that belongs to `uid` and runs a script in CommonJS. It may not be able to open
 * anything in this folder: Node comes to it as an open file, and what the test runner has every
 * Node preload is taken out of its environment.
 */
export function startAs(uid: number, source: string): ProcessAs {
  const child = spawnAs(uid, source)
  const output = child.stdout ? text(child.stdout) : Promise.resolve('')
  return { process: child, output, failed: failureOf(uid, child) }
}

function spawnAs(uid: number, source: string): ChildProcess {
  const node = openSync(process.execPath, 'r')
  const child = spawn('env', ['-u', 'NODE_OPTIONS', '/proc/self/fd/3', '-e', source], {
    uid,
    gid: uid,
    cwd: '/',
    stdio: ['pipe', 'pipe', 'pipe', node],
  })
  closeSync(node)
  return child
}

function failureOf(uid: number, child: ChildProcess): Promise<never> {
  const complaint = child.stderr ? text(child.stderr) : Promise.resolve('')
  const failed = once(child, 'close').then(async ([code, signal]) => {
    if (code === 0 || signal !== null) return new Promise<never>(() => undefined)
    throw new Error(`the process of uid ${uid} ended with ${code}: ${await complaint}`)
  })
  failed.catch(() => undefined)
  return failed
}
