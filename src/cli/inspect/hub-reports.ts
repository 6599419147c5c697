import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { wholeAnswer } from '../../base/whole-answer.ts'
import type { ReportOptions } from './inspection.ts'

/** Where the operations port of a hub is, and with what it is inspected. */
export interface HubAddress {
  readonly host: string
  readonly port: number
  /** Absent: as the user who runs the command. */
  readonly tokenFile?: string | undefined
}

const patienceMs = 30_000

/** A report of the hub's operations port, as JSON. Rejects with a message for people. */
export async function hubReport(
  at: HubAddress,
  path: string,
  { body }: ReportOptions = {},
): Promise<unknown> {
  const { host, port, tokenFile } = at
  const sent = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
  const asking = request({
    host,
    port,
    path: `/inspect/${path}`,
    method: sent ? 'POST' : 'GET',
    headers: {
      ...(tokenFile !== undefined && { Authorization: `Bearer ${tokenIn(tokenFile)}` }),
      ...(sent && { 'Content-Type': 'application/json', 'Content-Length': sent.byteLength }),
    },
    agent: false,
  })
  asking.end(sent)
  const { status, text } = await wholeAnswer(asking, patienceMs)
  if (status === 200) return JSON.parse(text)
  const help = status === 401 || status === 403 ? `. ${asRoot}` : ''
  throw new Error(`${status} ${text.trim().slice(0, 200)}${help}`)
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
