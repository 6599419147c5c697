import { Agent, request } from 'undici'
import { listDecoder, type Cut } from '../api/codec/list-decoder.ts'
import { watchEvents } from '../api/codec/watch-decoder.ts'
import type { WatchEvent } from '../api/codec/watch.ts'
import { mediaType, type Encoding } from '../api/kube/media-type.ts'
import type { ApiObject } from '../api/kube/object.ts'
import {
  ResourceExpired,
  Reflector,
  watchQuery,
  type WatchOptions,
} from '../api/reflector/reflector.ts'

export interface ClientInformerOptions {
  /** Where its API server is; a hub is one. */
  readonly server: string
  readonly userAgent: string
  readonly path: string
  /** Selectors, as they are written in a URL. */
  readonly query?: Record<string, string>
  readonly encoding: Encoding
  readonly headers?: Record<string, string>
  /** After each change of what it holds; `relisted` where a list brought it. */
  readonly onChange?: (informer: ClientInformer, relisted: boolean) => void
}

/** A component of a node, as an API server and a hub see it: a reflector over HTTP. */
export class ClientInformer implements AsyncDisposable {
  /** What it holds, by namespace and name. */
  readonly objects = new Map<string, ApiObject>()
  readonly #options: ClientInformerOptions
  readonly #stopped = new AbortController()
  readonly #agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 })
  readonly #running: Promise<void>
  #version: string | undefined
  /** How often it had to list. */
  lists = 0
  watches = 0

  constructor(options: ClientInformerOptions) {
    this.#options = options
    const reflector = new Reflector(
      {
        listerWatcher: {
          list: () => this.#list(),
          watch: (watch) => this.#watch(watch),
        },
        version: () => this.#version,
      },
      {
        onSynced: () => undefined,
        onOpen: () => undefined,
        onEvents: (events) => this.#apply(events),
        onClosed: () => undefined,
        onFailed: () => undefined,
      },
    )
    this.#running = reflector.run(this.#stopped.signal)
  }

  get resourceVersion(): string {
    return this.#version ?? ''
  }

  async #get(query: Record<string, string>): ReturnType<typeof request> {
    const { server, path, userAgent, encoding, headers } = this.#options
    const parameters = new URLSearchParams({ ...this.#options.query, ...query })
    const answer = await request(`${server}${path}?${parameters}`, {
      dispatcher: this.#agent,
      signal: this.#stopped.signal,
      headers: { 'user-agent': userAgent, accept: mediaType(encoding), ...headers },
    })
    if (answer.statusCode === 200) return answer
    await answer.body.dump()
    if (answer.statusCode === 410) throw new ResourceExpired()
    throw new Error(`${path} was answered ${answer.statusCode}`)
  }

  async #list(): Promise<void> {
    this.lists++
    const { body } = await this.#get({ resourceVersion: this.#version ?? '0' })
    const cutter = listDecoder(this.#options.encoding, 'object')
    const cuts: Cut[] = []
    for await (const chunk of body) cuts.push(cutter.push(chunk as Buffer))
    const { meta } = cutter.end()
    this.objects.clear()
    for (const object of cuts.flatMap(({ batch }) => batch?.objects ?? [])) this.#set(object)
    this.#version = meta.resourceVersion
    this.#options.onChange?.(this, true)
  }

  async #watch(options: WatchOptions): Promise<AsyncIterable<readonly WatchEvent[]>> {
    this.watches++
    const { body } = await this.#get(watchQuery(options))
    return watchEvents(body, this.#options.encoding)
  }

  #apply(events: readonly WatchEvent[]): void {
    for (const event of events) {
      if (event.type === 'ERROR') continue
      if (event.type === 'BOOKMARK') {
        this.#version = event.resourceVersion
        continue
      }
      if (event.type === 'DELETED') this.objects.delete(keyOf(event.object))
      else this.#set(event.object)
      this.#version = event.object.resourceVersion
    }
    this.#options.onChange?.(this, false)
  }

  #set(object: ApiObject): void {
    // What is kept must not keep alive the chunk it was cut from.
    this.objects.set(keyOf(object), { ...object, bytes: Uint8Array.from(object.bytes) })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort()
    await this.#running
    await this.#agent.destroy()
  }
}

const keyOf = ({ namespace, name }: ApiObject): string => `${namespace}/${name}`
