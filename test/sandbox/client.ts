import { request, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { request as requestSecurely } from 'node:https'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import { inTime } from '../kit/until.ts'

export interface ClientRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
}

export interface ClientResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly bytes: Buffer
  readonly text: string
}

export interface Client {
  send(path: string, options?: ClientRequest): Promise<ClientResponse>
  /** Resolves with the head; the body is still to come. */
  open(path: string, options?: ClientRequest): Promise<IncomingMessage>
  /** The object or list in the answer. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at answers of every shape
  json(path: string, options?: ClientRequest): Promise<any>
}

export interface Credentials {
  readonly certificate?: string
  readonly key?: string
}

/** A client that opens a connection of its own for every request. */
export function clientOf(
  url: string,
  ca?: string,
  shown: Credentials | Promise<Credentials> = {},
): Client {
  const open = async (path: string, { method = 'GET', headers = {}, body }: ClientRequest = {}) => {
    const credentials = await shown
    return new Promise<IncomingMessage>((resolve, reject) => {
      const make = url.startsWith('https:') ? requestSecurely : request
      const asking = make(`${url}${path}`, {
        method,
        headers: {
          ...headers,
          ...(body !== undefined && { 'Content-Length': Buffer.byteLength(body) }),
        },
        agent: false,
        ...(ca !== undefined && { ca }),
        ...(credentials.certificate !== undefined && { cert: credentials.certificate }),
        ...(credentials.key !== undefined && { key: credentials.key }),
      })
      asking.on('response', resolve).on('error', reject)
      asking.end(body)
    })
  }
  const send = async (path: string, options?: ClientRequest): Promise<ClientResponse> => {
    const answer = await open(path, options)
    const chunks: Buffer[] = []
    for await (const chunk of answer) chunks.push(chunk as Buffer)
    const bytes = Buffer.concat(chunks)
    return {
      status: answer.statusCode ?? 0,
      headers: answer.headers,
      bytes,
      text: bytes.toString(),
    }
  }
  return {
    open,
    send,
    json: async (path, options) => JSON.parse((await send(path, options)).text) as unknown,
  }
}

/** A client of a sandbox; over TLS as a member of system:masters. */
export const adminOf = (sandbox: Sandbox): Client =>
  sandbox.caCertificate === undefined
    ? clientOf(sandbox.url)
    : clientOf(
        sandbox.url,
        sandbox.caCertificate,
        sandbox.clientCertificate('admin', ['system:masters']),
      )

/** The events of a watch in JSON, one at a time; a watch that ends gives undefined. */
// oxlint-disable-next-line typescript/no-explicit-any -- as above
export function eventsOf(answer: IncomingMessage): { next(): Promise<any> } {
  const lines = (async function* () {
    let rest = ''
    for await (const chunk of answer) {
      const parts = (rest + (chunk as Buffer).toString()).split('\n')
      rest = parts.pop() ?? ''
      yield* parts
    }
  })()
  return {
    next: async () => {
      const { value, done } = await inTime('the next event of a watch', lines.next())
      return done === true ? undefined : (JSON.parse(value) as unknown)
    },
  }
}

export const pods = { group: '', version: 'v1', resource: 'pods' }
export const configMaps = { group: '', version: 'v1', resource: 'configmaps' }

export const pod = (name: string, labels: Record<string, string> = {}, nodeName = 'n1') => ({
  metadata: { name, namespace: 'default', labels },
  spec: { nodeName, containers: [{ name: 'c', image: 'i:1' }] },
})

export const configMap = (name: string, labels: Record<string, string> = {}) => ({
  metadata: { name, namespace: 'default', labels },
  data: { a: '1' },
})
