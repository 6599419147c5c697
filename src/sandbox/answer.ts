import { randomUUID } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { now } from '../base/clock.ts'
import type { Status } from '../api/kube/status.ts'
import { contentTypeOf, type Representation } from './negotiation.ts'
import type { ResponseWriter } from './response-writer.ts'
import { renderStatus } from './render.ts'
import type { SeenRequest } from './requests.ts'

/**
 * Names of the flow schema and priority level that the server tells; one each, as it has no flow
 * control.
 */
const flowSchema = randomUUID()
const priorityLevel = randomUUID()

/** Bodies larger than this are compressed for clients that take it. */
const compressedFrom = 128 * 1024

/** What Go holds back before it gives up knowing the length. */
const lengthKnownTo = 2048

export interface ResponseBody {
  readonly status: number
  readonly contentType: string
  readonly bytes: Buffer
  /** Further header fields, by name. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Sends a whole answer with the headers of an API server. */
export function sendBody(
  outlet: ResponseWriter,
  request: SeenRequest,
  { status, contentType, bytes, headers }: ResponseBody,
): void {
  const compressed =
    bytes.byteLength > compressedFrom && /\bgzip\b/.test(String(request.headers['accept-encoding']))
  const sent = compressed ? gzipSync(bytes, { level: 1 }) : bytes
  const fields = ownFields(request, contentType, {
    ...(compressed && { 'Content-Encoding': 'gzip', Vary: 'Accept-Encoding' }),
    ...headers,
  })
  const length: string[] =
    sent.byteLength < lengthKnownTo
      ? ['Content-Length', String(sent.byteLength)]
      : ['Transfer-Encoding', 'chunked']
  outlet.head(status, [...fields, ...length])
  outlet.end(request.method === 'HEAD' ? undefined : sent)
}

/** The head of an answer that goes on until its stream ends. */
export function sendStreamHead(
  outlet: ResponseWriter,
  request: SeenRequest,
  contentType: string,
): void {
  const fields = ownFields(request, contentType, {})
  outlet.head(200, [...fields, 'Transfer-Encoding', 'chunked'], true)
}

export function sendStatus(
  outlet: ResponseWriter,
  request: SeenRequest,
  status: Status,
  representation: Representation,
): void {
  const retryAfter = status.details?.retryAfterSeconds
  sendBody(outlet, request, {
    status: status.code,
    contentType: contentTypeOf(representation),
    bytes: renderStatus(status, representation),
    headers: {
      ...(retryAfter !== undefined && { 'Retry-After': String(retryAfter) }),
      ...(status.code === 403 && { 'X-Content-Type-Options': 'nosniff' }),
    },
  })
}

/** Text as Go's http.Error sends it. */
export function sendText(
  outlet: ResponseWriter,
  request: SeenRequest,
  status: number,
  text: string,
): void {
  sendBody(outlet, request, {
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
