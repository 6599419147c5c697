import { randomUUID } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { now } from '../base/clock.ts'
import type { GVK } from '../api/kube/gvk.ts'
import type { JsonObject } from '../api/kube/json.ts'
import type { Status } from '../api/kube/status.ts'
import type { ResponseTarget } from './call.ts'
import { contentTypeOf, type ResponseFormat } from './negotiation.ts'
import { encode, statusGvk } from './render.ts'
import type { SeenRequest } from './requests.ts'

/**
 * The UIDs of the flow schema and priority level in answers; one each, as there is no flow control.
 */
const flowSchema = randomUUID()
const priorityLevel = randomUUID()

/** Bodies larger than this are compressed for clients that take it. */
const compressedFrom = 128 * 1024

/** The size up to which Go buffers a body and sends its length. */
const lengthKnownTo = 2048

export interface ResponseBody {
  /** Default: 200. */
  readonly status?: number
  readonly contentType: string
  readonly bytes: Buffer
  /** Further header fields, by name. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Sends a whole answer with the headers of an API server. */
export function sendBody(
  { seen, writer }: ResponseTarget,
  { status = 200, contentType, bytes, headers }: ResponseBody,
): void {
  const compressed =
    bytes.byteLength > compressedFrom && /\bgzip\b/.test(String(seen.headers['accept-encoding']))
  const sent = compressed ? gzipSync(bytes, { level: 1 }) : bytes
  const fields = ownFields(seen, contentType, {
    ...(compressed && { 'Content-Encoding': 'gzip', Vary: 'Accept-Encoding' }),
    ...headers,
  })
  const length: string[] =
    sent.byteLength < lengthKnownTo
      ? ['Content-Length', String(sent.byteLength)]
      : ['Transfer-Encoding', 'chunked']
  writer.head(status, [...fields, ...length])
  writer.end(seen.method === 'HEAD' ? undefined : sent)
}

/** The head of an answer that goes on until its stream ends. */
export function sendStreamHead({ seen, writer }: ResponseTarget, contentType: string): void {
  const fields = ownFields(seen, contentType, {})
  writer.head(200, [...fields, 'Transfer-Encoding', 'chunked'], true)
}

/** Sends an object in the encoding of an answer. */
export function sendObject(
  target: ResponseTarget,
  gvk: GVK,
  object: JsonObject,
  format: ResponseFormat,
  more: Pick<ResponseBody, 'status' | 'headers'> = {},
): void {
  const bytes = encode(gvk, object, format)
  sendBody(target, { contentType: contentTypeOf(format), bytes, ...more })
}

export function sendStatus(target: ResponseTarget, status: Status, format: ResponseFormat): void {
  const retryAfter = status.details?.retryAfterSeconds
  sendObject(target, statusGvk, status as unknown as JsonObject, format, {
    status: status.code,
    headers: {
      ...(retryAfter !== undefined && { 'Retry-After': String(retryAfter) }),
      ...(status.code === 403 && { 'X-Content-Type-Options': 'nosniff' }),
    },
  })
}

/** Text as Go's http.Error sends it. */
export function sendText(target: ResponseTarget, status: number, text: string): void {
  sendBody(target, {
    status,
    contentType: 'text/plain; charset=utf-8',
    bytes: Buffer.from(text),
    headers: { 'X-Content-Type-Options': 'nosniff' },
  })
}

/** Sorted as Go sorts them, then the date. */
function ownFields(
  request: SeenRequest,
  contentType: string,
  headers: Readonly<Record<string, string>>,
): string[] {
  const fields: Record<string, string> = {
    'Audit-Id': String(request.headers['audit-id'] ?? randomUUID()),
    'Cache-Control': 'no-cache, private',
    'Content-Type': contentType,
    'X-Kubernetes-Pf-Flowschema-Uid': flowSchema,
    'X-Kubernetes-Pf-Prioritylevel-Uid': priorityLevel,
    ...headers,
  }
  const sorted = Object.entries(fields).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return [...sorted.flat(), 'Date', new Date(now()).toUTCString()]
}
