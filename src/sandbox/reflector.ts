import { Agent, request } from 'undici'
import { sleep } from '../base/clock.ts'
import type { Cut } from '../codec/list-cutter.ts'
import { listCutter } from '../codec/list-cutter.ts'
import { watchCutter } from '../codec/watch-cutter.ts'
import { mediaType, type Encoding } from '../kube/media-type.ts'
import type { ApiObject } from '../kube/object.ts'

export interface ReflectorOptions {
  /** Where its API server is; a hub is one. */
  readonly server: string
  readonly userAgent: string
  readonly path: string
  /** Selectors, as they are written in a URL. */
  readonly query?: Record<string, string>
  readonly encoding: Encoding
  readonly headers?: Record<string, string>
  /** After each change of what it holds; `relisted` where a list brought it. */
  readonly onChange?: (reflector: Reflector, relisted: boolean) => void
}

/** client-go's first wait after a failure (tools/cache/reflector.go), doubled up to its cap. */
const firstWaitMs = 800
const longestWaitMs = 30_000

/**
 * Keeps in step with a collection the way client-go's reflector does: lists, watches from the
 * list's version, watches again from the last version it saw when a watch ends, lists again when
 * that version is refused.
 */
export class Reflector implements AsyncDisposable {
  /** What it holds, by namespace and name. */
  readonly objects = new Map<string, ApiObject>()
  readonly #options: ReflectorOptions
  readonly #stopped = new AbortController()
  readonly #agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 })
  readonly #running: Promise<void>
  #version = ''
  /** How often it had to list. */
  lists = 0
  watches = 0

  constructor(options: ReflectorOptions) {
    this.#options = options
    this.#running = this.#run()
  }

  get resourceVersion(): string {
    return this.#version
  }

  async #run(): Promise<void> {
    let wait = firstWaitMs
    const { signal } = this.#stopped
    while (!signal.aborted) {
      try {
        await this.#list()
        wait = firstWaitMs
        while (await this.#watch()) if (signal.aborted) return
      } catch {
        // Whatever went wrong, the answer is to wait and to list again.
      }
      await sleep(wait, signal)
      wait = Math.min(wait * 2, longestWaitMs)
    }
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
    throw new Error(`${path} was answered ${answer.statusCode}`)
  }

  async #list(): Promise<void> {
    this.lists++
    const { body } = await this.#get({
      resourceVersion: this.#version === '' ? '0' : this.#version,
    })
    const cutter = listCutter(this.#options.encoding, 'object')
    const cuts: Cut[] = []
    for await (const chunk of body) cuts.push(cutter.push(chunk as Buffer))
    const { meta } = cutter.end()
    this.objects.clear()
    for (const object of cuts.flatMap(({ batch }) => batch?.objects ?? [])) this.#set(object)
    this.#version = meta.resourceVersion
    this.#options.onChange?.(this, true)
  }

  /**
   * False where the version was refused, or the watch ended too soon to be one: then a list is due.
   */
  async #watch(): Promise<boolean> {
    this.watches++
    const began = performance.now()
    const { body } = await this.#get({
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: this.#version,
      timeoutSeconds: String(Math.ceil(300 + Math.random() * 300)),
    })
    const cutter = watchCutter(this.#options.encoding, 'object')
    let events = 0
    try {
      for await (const chunk of body) {
        for (const event of cutter.push(chunk as Buffer)) {
          events++
          if (event.type === 'ERROR') return false
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
    } catch {
      // A stream that breaks is a stream that ends.
    }
    return events > 0 || performance.now() - began > 1000
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
