import { now } from '../../base/clock.ts'
import type { BodyReply } from '../exchange/exchange.ts'
import { HeaderList } from '../exchange/headers.ts'

/** A whole answer of the operations port; text unless `fields` say otherwise. */
export function opsReply(
  status: number,
  content: string | Uint8Array,
  fields: Readonly<Record<string, string>> = {},
): BodyReply {
  const body = Buffer.from(content)
  const headers = opsHeaders({ ...fields, 'Content-Length': String(body.byteLength) })
  const reason = status >= 400 && typeof content === 'string' ? content.trim() : ''
  const explanation = reason === '' ? {} : { reason }
  return { kind: 'body', status, headers, from: 'hub', explanation, body }
}

/** The head of such an answer. */
export const opsHeaders = (fields: Readonly<Record<string, string>>): HeaderList =>
  new HeaderList(
    Object.entries({
      'Content-Type': 'text/plain; charset=utf-8',
      'X-Content-Type-Options': 'nosniff',
      ...fields,
      Date: new Date(now()).toUTCString(),
    }).flat(),
  )
