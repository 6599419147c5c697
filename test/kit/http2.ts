import { once } from 'node:events'
import type {
  ClientHttp2Session,
  IncomingHttpHeaders,
  IncomingHttpStatusHeader,
  OutgoingHttpHeaders,
} from 'node:http2'

export interface Http2Answer {
  readonly status: number
  /** Names and values in turn, without the status. */
  readonly fields: readonly string[]
  readonly body: string
  readonly trailers: IncomingHttpHeaders
}

type Head = IncomingHttpHeaders & IncomingHttpStatusHeader

export interface Http2Stream {
  head(): Promise<Head>
  /** Rejects where the answer breaks off. */
  whole(): Promise<Http2Answer>
  /** Reads until the body has such a text, and closes the stream; false where it ends before. */
  until(text: string): Promise<boolean>
}

/** One request over an HTTP/2 connection. Text is latin1. */
export function openStream(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body?: string,
): Http2Stream {
  const stream = session.request(headers, { endStream: body === undefined })
  stream.on('error', () => undefined)
  if (body !== undefined) stream.end(body, 'latin1')
  let trailers: IncomingHttpHeaders = {}
  stream.on('trailers', (sent) => (trailers = sent))
  const responded = once(stream, 'response') as Promise<[Head, number, string[]]>
  responded.catch(() => undefined)
  return {
    head: async () => (await responded)[0],
    whole: async () => {
      const [head, , raw] = await responded
      let text = ''
      for await (const chunk of stream) text += (chunk as Buffer).toString('latin1')
      const fields = raw.filter((_, i) => !raw[i - (i % 2)]?.startsWith(':'))
      return { status: Number(head[':status']), fields, body: text, trailers }
    },
    until: async (wanted) => {
      let text = ''
      for await (const chunk of stream) {
        text += (chunk as Buffer).toString('latin1')
        if (text.includes(wanted)) return true
      }
      return false
    },
  }
}
