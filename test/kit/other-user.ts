import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { text } from 'node:stream/consumers'

/** A request as plain data. */
export interface AskedAs {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
}

export interface AnsweredAs {
  readonly status: number
  readonly body: string
}

/**
 * Asks each on a connection of its own, in turn, and prints the answers; without types, for it is
 * handed over as text.
 */
const script = `
const { text } = require('node:stream/consumers')
const ask = ({ url, ...options }) =>
  new Promise((resolve, reject) => {
    const { get } = require(url.startsWith('https:') ? 'node:https' : 'node:http')
    get(url, { ...options, agent: false }, async (answer) =>
      resolve({ status: answer.statusCode, body: await text(answer) })
    ).on('error', reject)
  })
text(process.stdin).then(async (input) => {
  const answers = []
  for (const asked of JSON.parse(input)) answers.push(await ask(asked))
  process.stdout.write(JSON.stringify(answers))
})
`

/**
 * The answers to requests of a process that belongs to `uid`; only root can start one for somebody
 * else.
 */
export async function askAs(uid: number, asked: readonly AskedAs[]): Promise<AnsweredAs[]> {
  const { process: child, output, failed } = startAs(uid, script)
  child.stdin?.end(JSON.stringify(asked))
  return JSON.parse(await Promise.race([output, failed])) as AnsweredAs[]
}

export interface StartedAs {
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
export function startAs(uid: number, source: string): StartedAs {
  const node = openSync(process.execPath, 'r')
  const child = spawn('env', ['-u', 'NODE_OPTIONS', '/proc/self/fd/3', '-e', source], {
    uid,
    gid: uid,
    cwd: '/',
    stdio: ['pipe', 'pipe', 'pipe', node],
  })
  closeSync(node)
  const output = child.stdout ? text(child.stdout) : Promise.resolve('')
  const complaint = child.stderr ? text(child.stderr) : Promise.resolve('')
  const failed = once(child, 'close').then(async ([code, signal]) => {
    if (code === 0 || signal !== null) return new Promise<never>(() => undefined)
    throw new Error(`the process of uid ${uid} ended with ${code}: ${await complaint}`)
  })
  failed.catch(() => undefined)
  return { process: child, output, failed }
}
