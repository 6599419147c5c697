/**
 * A message read as RFC 9112 has it, in one go and to the letter: what is not allowed ends the
 * reading. Text is latin1.
 */
export interface Message {
  /** The request or status line. */
  readonly line: string
  /** Names and values in turn. */
  readonly fields: readonly string[]
  readonly body: string
  /** How the end of the body is told; `close` where nothing but the end of the connection does. */
  readonly framing: 'length' | 'chunked' | 'close' | 'none'
  /** Behind the message. */
  readonly end: number
}

const requestLine = /^[!#$%&'*+\-.^_`|~\w]+ +[\x21-\x7e\x80-\xff]+ +HTTP\/1\.[01]$/
/** What stands in a reason phrase is passed over by everybody. */
const statusLine = /^HTTP\/1\.[01] [1-5]\d\d(?: [^\r\n]*)?$/
const field =
  /^([!#$%&'*+\-.^_`|~\w]+):[ \t]*((?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?)[ \t]*$/

export const valuesOf = ({ fields }: Pick<Message, 'fields'>, name: string): string[] =>
  fields.filter((_, i) => i % 2 === 1 && fields[i - 1]?.toLowerCase() === name)

/**
 * The requests that stand whole at the beginning of `text`, up to the first that does not; what
 * follows an upgrade is for others to tell.
 */
export function readRequests(text: string): Message[] {
  const requests: Message[] = []
  for (let at = 0; ;) {
    // RFC 9112 section 2.2: empty lines before a request are passed over; that one may be a lone LF
    // changes nothing.
    while (text[at] === '\r' || text[at] === '\n') at++
    const request = readMessage(text, at, 'request')
    if (!request) return requests
    requests.push(request)
    at = request.end
    if (request.line.startsWith('CONNECT ')) return requests
  }
}

/**
 * The answer at `from`; `undefined` where it is not whole, or not to the letter. Interim answers
 * are passed over.
 */
export function readAnswer(text: string, from = 0, method = 'GET'): Message | undefined {
  for (let at = from; ;) {
    const answer = readMessage(text, at, 'answer', method)
    if (!answer || !/^HTTP\/1\.\d 1/.test(answer.line)) return answer
    at = answer.end
  }
}

function readMessage(
  text: string,
  from: number,
  kind: 'request' | 'answer',
  method = 'GET',
): Message | undefined {
  const headEnd = text.indexOf('\r\n\r\n', from)
  if (headEnd < 0) return undefined
  const [line = '', ...lines] = text.slice(from, headEnd).split('\r\n')
  if (!(kind === 'request' ? requestLine : statusLine).test(line)) return undefined
  const fields = fieldsOf(lines)
  const length = fields && lengthOf(fields, kind, line, method)
  if (!fields || length === undefined) return undefined
  const head = { line, fields }
  const start = headEnd + 4
  if (length === 'chunked') {
    const read = readChunks(text, start)
    return read && { ...head, ...read, framing: 'chunked' }
  }
  if (length === 'close')
    return { ...head, body: text.slice(start), end: text.length, framing: 'close' }
  const end = start + (length === 'none' ? 0 : length)
  if (end > text.length) return undefined
  const framing = length === 'none' ? 'none' : 'length'
  return { ...head, body: text.slice(start, end), end, framing }
}

function fieldsOf(lines: readonly string[]): string[] | undefined {
  const fields: string[] = []
  for (const line of lines) {
    const [, name, value] = field.exec(line) ?? []
    if (name === undefined || value === undefined) return undefined
    fields.push(name, value)
  }
  return fields
}

type Length = number | 'chunked' | 'close' | 'none' | undefined

function lengthOf(
  fields: readonly string[],
  kind: 'request' | 'answer',
  line: string,
  method: string,
): Length {
  const lengths = valuesOf({ fields }, 'content-length')
  const codings = valuesOf({ fields }, 'transfer-encoding')
  if (kind === 'answer' && (method === 'HEAD' || /^HTTP\/1\.\d (?:1\d\d|204|304)/.test(line)))
    return 'none'
  if (codings.length + lengths.length > 1) return undefined
  const [coding] = codings
  if (coding !== undefined) {
    if (coding.toLowerCase() === 'chunked' && line.includes('HTTP/1.1')) return 'chunked'
    // RFC 9112 section 6.3: an answer in any other coding ends with its connection.
    return kind === 'answer' && !/chunked/i.test(coding) ? 'close' : undefined
  }
  const [length] = lengths
  if (length === undefined) return kind === 'request' ? 'none' : 'close'
  return /^\d{1,15}$/.test(length) ? Number(length) : undefined
}

function readChunks(text: string, from: number): { body: string; end: number } | undefined {
  let body = ''
  for (let at = from; ;) {
    const lineEnd = text.indexOf('\r\n', at)
    const size =
      lineEnd < 0
        ? undefined
        : /^([\da-f]{1,12})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?$/i.exec(text.slice(at, lineEnd))
    if (!size?.[1]) return undefined
    const start = lineEnd + 2
    const end = start + Number.parseInt(size[1], 16)
    if (end === start) return withTrailers(text, start, body)
    if (!text.startsWith('\r\n', end)) return undefined
    body += text.slice(start, end)
    at = end + 2
  }
}

function withTrailers(
  text: string,
  from: number,
  body: string,
): { body: string; end: number } | undefined {
  if (text.startsWith('\r\n', from)) return { body, end: from + 2 }
  const end = text.indexOf('\r\n\r\n', from)
  if (end < 0 || !fieldsOf(text.slice(from, end).split('\r\n'))) return undefined
  return { body, end: end + 4 }
}

/** What of the body of the first final answer can be read, whether it is whole or not. */
export function bodySoFar(text: string): string {
  const head = /HTTP\/1\.\d [2-5][^]*?\r\n\r\n/.exec(text)
  if (!head) return ''
  const rest = text.slice(head.index + head[0].length)
  if (!/transfer-encoding/i.test(head[0])) return rest
  let body = ''
  for (let at = 0; ;) {
    const lineEnd = rest.indexOf('\r\n', at)
    const size = Number.parseInt(rest.slice(at, lineEnd), 16)
    if (lineEnd < 0 || !(size > 0)) return body
    body += rest.slice(lineEnd + 2, lineEnd + 2 + size)
    at = lineEnd + 2 + size + 2
  }
}
