import { Agent, request } from 'undici'
import { mediaType } from '../api/kube/media-type.ts'
import type { ApiObject } from '../api/kube/object.ts'
import {
  Informer,
  requestedReads,
  type InformerOptions,
  type RequestedReads,
} from '../api/reflector/informer.ts'
import { ResourceExpired } from '../api/reflector/reflector.ts'

export interface ClientInformerOptions
  extends Pick<InformerOptions<ApiObject>, 'onChange'>, Pick<RequestedReads, 'encoding'> {
  /** The address of an API server or a hub. */
  readonly server: string
  readonly userAgent: string
  readonly path: string
  /** Selectors, as they are written in a URL. */
  readonly query?: Record<string, string>
}

/** An informer of a component on a node: it reads whole objects over HTTP. */
export class ClientInformer extends Informer<ApiObject> {
  readonly #agent: Agent

  constructor(options: ClientInformerOptions) {
    const { server, userAgent, path, encoding } = options
    const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 })
    super({
      ...options,
      // The copy does not keep the whole chunk of the answer alive.
      transform: (object) => ({ ...object, bytes: Uint8Array.from(object.bytes) }),
      reads: requestedReads({
        encoding,
        listQuery: (lastObserved = '0') => ({ resourceVersion: lastObserved }),
        open: async (query, signal) => {
          const parameters = new URLSearchParams({ ...options.query, ...query })
          const { statusCode, body } = await request(`${server}${path}?${parameters}`, {
            dispatcher: agent,
            signal,
            headers: { 'user-agent': userAgent, accept: mediaType(encoding) },
          })
          if (statusCode === 200) return body as AsyncIterable<Buffer>
          await body.dump()
          if (statusCode === 410) throw new ResourceExpired()
          throw new Error(`${path} was answered ${statusCode}`)
        },
      }),
    })
    this.#agent = agent
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]()
    await this.#agent.destroy()
  }
}
