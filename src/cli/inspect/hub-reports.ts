import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request, type ClientRequest, type IncomingMessage } from 'node:http'
import { createInterface } from 'node:readline'
import { wholeAnswer } from '../../base/whole-answer.ts'

/** The operations port of a hub, and the credential for inspections. */
export interface HubAddress {
  readonly host: string
  readonly port: number
  /** Absent: as the user who runs the command. */
  readonly tokenFile?: string | undefined
}

const patienceMs = 30_000

/** A report of the hub's operations port, as JSON. Rejects with a message for people. */
export async function hubReport(at: HubAddress, path: string): Promise<unknown> {
  const asking = opsRequest(at, `/inspect/${path}`)
  asking.end()
  const { status, text } = await wholeAnswer(asking, patienceMs)
  if (status === 200) return JSON.parse(text)
  throw refusal(status, text)
}

/**
 * The items of a report that is followed: the last ones, and then each batch that is added. Rejects
 * with a message for people, also where the hub ends the report.
 */
export async function* hubItems(at: HubAddress, path: string): AsyncGenerator<readonly object[]> {
  const watched = `${path}${path.includes('?') ? '&' : '?'}watch=true`
  const asking = opsRequest(at, `/inspect/${watched}`)
  asking.end()
  const [answer] = (await once(asking, 'response')) as [IncomingMessage]
  answer.setEncoding('utf8')
  const { statusCode = 0 } = answer
  if (statusCode !== 200) throw refusal(statusCode, (await answer.toArray()).join(''))
  for await (const line of createInterface({ input: answer })) {
    if (line.startsWith('data: ')) yield JSON.parse(line.slice(6)) as readonly object[]
  }
}

/** A request to the operations port, which the caller ends. */
export const opsRequest = (at: HubAddress, path: string): ClientRequest =>
  request({ host: at.host, port: at.port, path, agent: false, headers: authorization(at) })

const authorization = ({ tokenFile }: HubAddress): Record<string, string> =>
  tokenFile === undefined ? {} : { Authorization: `Bearer ${tokenIn(tokenFile)}` }

function refusal(status: number, text: string): Error {
  const help = status === 401 || status === 403 ? `. ${asRoot}` : ''
  return new Error(`${status} ${text.trim().slice(0, 200)}${help}`)
}

function tokenIn(file: string): string {
  try {
    return readFileSync(file, 'latin1').trim()
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw new Error(`--token-file=${file} cannot be read: ${code}`, { cause })
  }
}

const asRoot = 'Run this command as root, or with --token-file=FILE'
