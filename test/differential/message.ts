import { own, type RequestCase } from './request-case.ts'

/** The sender of a message: the address it sends to, its User-Agent and its own namespace. */
export interface Sender {
  readonly host: string
  readonly agent: string
  readonly namespace: string
}

/** A request in bytes, to be sent as they are. */
export function messageOf(request: RequestCase, sender: Sender): Buffer {
  if (request.raw !== undefined) {
    return Buffer.from(inOwn(request.raw.replaceAll('HOST', sender.host), sender), 'latin1')
  }
  const { method = 'GET', target, chunked = false } = request
  const body = bodyOf(request, sender)
  const lines = [`${method} ${inOwn(target, sender).replaceAll('HOST', sender.host)} HTTP/1.1`]
  for (const [name, value] of fieldsOf(request, sender)) lines.push(`${name}: ${value}`)
  if (body && chunked) lines.push('Transfer-Encoding: chunked')
  else if (body) lines.push(`Content-Length: ${body.byteLength}`)
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  if (!body) return head
  return Buffer.concat([head, chunked ? inChunks(body, request.trailers ?? {}) : body])
}

/** Names and values in the order in which they are sent, without the fields that frame the body. */
export function fieldsOf({ headers = {} }: RequestCase, sender: Sender): [string, string][] {
  const { host, agent } = sender
  const fields = { Host: host, 'User-Agent': agent, Accept: 'application/json', ...headers }
  return Object.entries(fields).flatMap(([name, value]) =>
    [value ?? []].flat().map((each): [string, string] => [name, inOwn(each, sender)]),
  )
}

export function bodyOf({ body }: RequestCase, sender: Sender): Buffer | undefined {
  if (body === undefined) return undefined
  // Names of namespaces are equally long, so that lengths within a message in protobuf stay true.
  return Buffer.from(inOwn(Buffer.from(body).toString('latin1'), sender), 'latin1')
}

export const inOwn = (text: string, { namespace }: Pick<Sender, 'namespace'>): string =>
  text.replaceAll(own, namespace)

/** In two chunks, so that there is more than one. */
function inChunks(body: Buffer, trailers: Readonly<Record<string, string>>): Buffer {
  const half = body.byteLength >> 1
  const chunks = [body.subarray(0, half), body.subarray(half)].filter((part) => part.byteLength > 0)
  const fields = Object.entries(trailers).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.concat([
    ...chunks.flatMap((chunk) => [
      Buffer.from(`${chunk.byteLength.toString(16)}\r\n`),
      chunk,
      Buffer.from('\r\n'),
    ]),
    Buffer.from(`0\r\n${fields.join('')}\r\n`),
  ])
}
