import { spawn } from 'node:child_process'
import { once } from 'node:events'

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

/** Asks each on a connection of its own, in turn, and prints the answers; without types, for it is handed over as text. */
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

/** The answers to requests of a process that belongs to `uid`; only root can start one for somebody else. */
export async function askAs(uid: number, asked: readonly AskedAs[]): Promise<AnsweredAs[]> {
  const child = spawn(process.execPath, ['-e', script], { uid, gid: uid, cwd: '/' })
  const [out, err]: string[][] = [[], []]
  child.stdout.on('data', (chunk: Buffer) => out?.push(chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => err?.push(chunk.toString()))
  child.stdin.end(JSON.stringify(asked))
  await once(child, 'close')
  if (child.exitCode !== 0) throw new Error(err?.join(''))
  return JSON.parse(out?.join('') ?? '') as AnsweredAs[]
}
