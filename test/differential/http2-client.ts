import { connect, type ClientHttp2Session, type OutgoingHttpHeaders } from 'node:http2'
import { reasonPhrase } from '../../src/http/server/message.ts'
import { openStream } from '../kit/http2.ts'
import { inTime } from '../kit/until.ts'
import type { RequestCase } from './request-case.ts'
import { patienceMs, shownBy, type Client, type ClientOptions } from './client.ts'
import { bodyOf, fieldsOf, inOwn, type Sender } from './message.ts'

/**
 * Fields that say something of an HTTP/1.1 connection, or of a head that HTTP/2 has in another
 * form.
 */
const ofHttp1 = new Set(['connection', 'expect', 'host', 'te', 'upgrade'])

/** HTTP/2 over TLS. Answers are rendered as HTTP/1.1. */
export function http2Client({ name, url, agent, namespace, tls }: ClientOptions): Client {
  const sender: Sender = { host: new URL(url).host, agent, namespace }
  const open = (shown: ClientOptions['tls']): ClientHttp2Session =>
    connect(url, shown).on('error', () => undefined)
  let kept: ClientHttp2Session | undefined
  let failure: unknown
  return {
    name,
    ...sender,
    get failure() {
      return failure
    },
    supports: ({ raw, trailers, http1, headers = {} }) =>
      http1 !== true &&
      raw === undefined &&
      trailers === undefined &&
      !Object.keys(headers).some((field) => ofHttp1.has(field.toLowerCase())),
    ask: async (request) => {
      const shown = shownBy(request, tls)
      const session = shown === tls ? (kept ??= open(shown)) : open(shown)
      try {
        const body = bodyOf(request, sender)
        const stream = openStream(session, headOf(request, sender), body?.toString('latin1'))
        const seconds = patienceMs / 1000
        const answer = await inTime('a whole answer over HTTP/2', stream.whole(), { seconds })
        const { status, fields, body: text } = answer
        const line = `HTTP/1.1 ${status} ${reasonPhrase(status)}`
        return { interim: [], status, line, fields, body: text, trailers: [] }
      } catch (cause) {
        failure = cause
        return undefined
      } finally {
        if (session !== kept) session.destroy()
      }
    },
    close: () => kept?.destroy(),
  }
}

function headOf(request: RequestCase, sender: Sender): OutgoingHttpHeaders {
  const fields: Record<string, string[]> = {}
  for (const [name, value] of fieldsOf(request, sender)) {
    if (ofHttp1.has(name.toLowerCase())) continue
    fields[name.toLowerCase()] = [...(fields[name.toLowerCase()] ?? []), value]
  }
  const body = bodyOf(request, sender)
  if (body && request.chunked !== true) fields['content-length'] = [String(body.byteLength)]
  return {
    ':method': request.method ?? 'GET',
    ':path': inOwn(request.target, sender),
    ':authority': sender.host,
    ...fields,
  }
}
