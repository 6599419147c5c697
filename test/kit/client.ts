import { once } from 'node:events'
import { request, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { request as requestSecurely } from 'node:https'
import { parseApiVersion } from '../../src/api/kube/gvk.ts'
import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import { mediaType, type Encoding } from '../../src/api/kube/media-type.ts'
import { fromProtobuf, toProtobuf } from '../../src/sandbox/protobuf.ts'
import { ClientWatch } from './client-watch.ts'

export { ClientWatch as Watching } from './client-watch.ts'

export interface RequestOptions {
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
  /** The preferred encoding; default JSON. */
  readonly encoding?: Encoding
  /** The Accept header, in place of the encoding's. */
  readonly accept?: string
  /** A bearer token. */
  readonly token?: string
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string }
}

export const tableAccept =
  'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json'

/** What makes a watch a WatchList. */
export const withInitialEvents = {
  sendInitialEvents: 'true',
  resourceVersionMatch: 'NotOlderThan',
  allowWatchBookmarks: 'true',
}

/** What client-go's metadata informers accept, for lists and for watches. */
export function metadataAccepts(encoding: Encoding): { list: string; watch: string } {
  const as = (kind: string): string =>
    [mediaType(encoding), mediaType('json')]
      .map((type) => `${type};as=${kind};g=meta.k8s.io;v=v1`)
      .join()
  return {
    list: `${as('PartialObjectMetadataList')},application/json`,
    watch: `${as('PartialObjectMetadata')},application/json`,
  }
}

/** A client of an API server or a hub, with a new connection for each request. */
export class Client {
  readonly #options: ClientOptions
  readonly encoding: Encoding

  constructor(options: ClientOptions) {
    this.#options = options
    this.encoding = options.encoding ?? 'json'
  }

  /** The same client with other options. */
  withOptions(changes: Partial<ClientOptions>): Client {
    return new Client({ ...this.#options, ...changes })
  }

  /** The head of an answer, with its body unread. Rejects if there is no answer. */
  open(path: string, asked: RequestOptions = {}): Promise<IncomingMessage> {
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
  async send(path: string, asked?: RequestOptions): Promise<Answer> {
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

  async list(path: string): Promise<ListAnswer> {
    const answer = await this.send(path)
    return { ...listed(objectOf(answer)), answer }
  }

  /** A watch whose head was received. */
  async watch(path: string, query: Record<string, string> = {}): Promise<ClientWatch> {
    const mark = path.includes('?') ? '&' : '?'
    const parameters = new URLSearchParams({ watch: 'true', ...query })
    return new ClientWatch(await this.open(`${path}${mark}${parameters}`))
  }
}

/** The `Warning` of an answer; '' where it has none. */
export const warningOf = ({ headers }: Answer): string => String(headers['warning'] ?? '')

/** The JSON of an answer in any encoding. */
export function objectOf({ headers, body }: Pick<Answer, 'headers' | 'body'>): JsonObject {
  return headers['content-type']?.startsWith('application/vnd.kubernetes.protobuf')
    ? fromProtobuf(body).object
    : (JSON.parse(body.toString()) as JsonObject)
}

export interface ListAnswer {
  readonly resourceVersion: string
  /** Namespace and name of each object, in the order they came. */
  readonly names: readonly string[]
  readonly answer: Answer
}

function listed(list: JsonObject): Omit<ListAnswer, 'answer'> {
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

/** The headers that two answers to the same request share, in the order received. */
export function lastingHeaders({ rawHeaders }: Pick<Answer, 'rawHeaders'>): string[] {
  const kept: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? ''
    if (/^(date|audit-id|connection|keep-alive|transfer-encoding)$/i.test(name)) continue
    kept.push(`${name}: ${rawHeaders[i + 1]}`)
  }
  return kept
}

/** Resolves when the answer has ended or was cut, to which of both. */
export async function howItEnds(answer: IncomingMessage): Promise<'ended' | 'broken'> {
  if (!answer.closed) await once(answer, 'close').catch(() => undefined)
  return answer.complete ? 'ended' : 'broken'
}
