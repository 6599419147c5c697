import { once } from 'node:events'
import { request, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { request as requestSecurely } from 'node:https'
import { parseApiVersion } from '../../src/api/kube/gvk.ts'
import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import { mediaType, type Encoding } from '../../src/api/kube/media-type.ts'
import { fromProtobuf, toProtobuf } from '../../src/sandbox/protobuf.ts'
import { Watching } from './client-watch.ts'

export { Watching } from './client-watch.ts'

export interface Asked {
  readonly method?: string
  readonly headers?: Record<string, string>
  /** An object is written in the client's encoding. */
  readonly body?: string | Buffer | JsonObject
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Names and values in turn, as they came. */
  readonly rawHeaders: readonly string[]
  readonly trailers: readonly string[]
  readonly body: Buffer
}

export interface ClientOptions {
  readonly url: string
  /** The program it says it is. */
  readonly component: string
  /** What it prefers; default JSON. */
  readonly encoding?: Encoding
  /** Instead of what the encoding would have it accept. */
  readonly accept?: string
  /** A bearer token. */
  readonly token?: string
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string }
}

export const tableAccept =
  'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json'

/**
 * A program that speaks to an API server, or to a hub, on a connection of its own for each request.
 */
export class Client {
  readonly #options: ClientOptions
  readonly encoding: Encoding

  constructor(options: ClientOptions) {
    this.#options = options
    this.encoding = options.encoding ?? 'json'
  }

  /** The same program with something else about it. */
  but(changes: Partial<ClientOptions>): Client {
    return new Client({ ...this.#options, ...changes })
  }

  /** The head of an answer; its body is left to be read. Rejects where there is no answer. */
  open(path: string, asked: Asked = {}): Promise<IncomingMessage> {
    const { method = 'GET', body } = asked
    const { url, tls } = this.#options
    const send = url.startsWith('https:') ? requestSecurely : request
    const bytes = body === undefined ? undefined : this.#bytesOf(body)
    return new Promise((resolve, reject) => {
      const asking = send(`${url}${path}`, {
        method,
        agent: false,
        headers: {
          ...this.#headers(),
          ...(bytes && {
            'Content-Type': mediaType(this.encoding),
            'Content-Length': String(bytes.byteLength),
          }),
          ...asked.headers,
        },
        ...tls,
      })
      asking.on('response', resolve).on('error', reject)
      asking.end(bytes)
    })
  }

  #headers(): Record<string, string> {
    const { component, token, accept } = this.#options
    return {
      'User-Agent': `${component}/v1.35.0 (linux/amd64) kubernetes/abcdef0`,
      Accept: accept ?? mediaType(this.encoding),
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
    }
  }

  #bytesOf(body: string | Buffer | JsonObject): Buffer {
    if (typeof body === 'string' || Buffer.isBuffer(body)) return Buffer.from(body)
    if (this.encoding === 'json') return Buffer.from(JSON.stringify(body))
    const { apiVersion, kind } = body as { apiVersion: string; kind: string }
    return toProtobuf({ ...parseApiVersion(apiVersion), kind }, body)
  }

  /** The whole answer. Rejects where it breaks off. */
  async send(path: string, asked?: Asked): Promise<Answer> {
    const answer = await this.open(path, asked)
    const chunks: Buffer[] = []
    for await (const chunk of answer) chunks.push(chunk as Buffer)
    return {
      status: answer.statusCode ?? 0,
      headers: answer.headers,
      rawHeaders: answer.rawHeaders,
      trailers: answer.rawTrailers,
      body: Buffer.concat(chunks),
    }
  }

  get(path: string): Promise<Answer> {
    return this.send(path)
  }

  async list(path: string): Promise<Listed> {
    const answer = await this.send(path)
    return { ...listed(objectOf(answer)), answer }
  }

  /** A watch whose head has come. */
  async watch(path: string, query: Record<string, string> = {}): Promise<Watching> {
    const mark = path.includes('?') ? '&' : '?'
    const parameters = new URLSearchParams({ watch: 'true', ...query })
    return new Watching(await this.open(`${path}${mark}${parameters}`))
  }
}

/** What an answer holds, as the API server would show it in JSON. */
export function objectOf({ headers, body }: Pick<Answer, 'headers' | 'body'>): JsonObject {
  return headers['content-type']?.startsWith('application/vnd.kubernetes.protobuf')
    ? fromProtobuf(body).object
    : (JSON.parse(body.toString()) as JsonObject)
}

export interface Listed {
  readonly resourceVersion: string
  /** Namespace and name of each object, in the order they came. */
  readonly names: readonly string[]
  readonly answer: Answer
}

function listed(list: JsonObject): Omit<Listed, 'answer'> {
  const { resourceVersion = '' } = (list['metadata'] ?? {}) as { resourceVersion?: string }
  const items = (list['items'] ?? []) as readonly JsonObject[]
  return { resourceVersion, names: items.map((item) => nameOf(item)) }
}

export function nameOf(object: JsonObject): string {
  const { namespace, name } = object['metadata'] as { namespace?: string; name: string }
  return namespace ? `${namespace}/${name}` : name
}

export const at = (object: Json | undefined, ...path: (string | number)[]): Json | undefined =>
  path.reduce<Json | undefined>(
    (value, key) =>
      typeof value === 'object' && value !== null ? (value as JsonObject)[key] : undefined,
    object,
  )

/** Headers that two answers to the same request should share, in the order they came. */
export function lastingHeaders({ rawHeaders }: Pick<Answer, 'rawHeaders'>): string[] {
  const kept: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? ''
    if (/^(date|audit-id|connection|keep-alive|transfer-encoding)$/i.test(name)) continue
    kept.push(`${name}: ${rawHeaders[i + 1]}`)
  }
  return kept
}

/** Resolves when the answer has been cut or has ended, to which of both. */
export async function howItEnds(answer: IncomingMessage): Promise<'ended' | 'broken'> {
  if (!answer.closed) await once(answer, 'close').catch(() => undefined)
  return answer.complete ? 'ended' : 'broken'
}
