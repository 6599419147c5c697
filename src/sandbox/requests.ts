import { Broadcast } from '../base/broadcast.ts'
import type { ResourceRequest } from '../api/request/request-info.ts'
import type { User } from './users.ts'

/** A request as the sandbox saw it. */
export interface SeenRequest {
  readonly method: string
  /** Path and query as they were sent. */
  readonly url: string
  readonly path: string
  readonly query: URLSearchParams
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** Names and values as they came. */
  readonly rawHeaders: readonly string[]
  /** Common name of the client certificate, if one was presented. */
  readonly clientCertificate: string | undefined
  /** Set once the request is authenticated. */
  user: User | undefined
  /** Where the request is about resources. */
  resource: ResourceRequest | undefined
  /** Which connection it came on: requests of one connection have the same number. */
  readonly connection: number
  /** Aborts when the request is over: answered whole, or its client gone. */
  readonly over: AbortSignal
}

/** How many requests are remembered. */
const remembered = 10_000

/** The requests received. */
export class Requests {
  readonly #seen: SeenRequest[] = []
  readonly #added = new Broadcast<[SeenRequest]>()

  /** Oldest first; only the latest are kept. */
  get seen(): readonly SeenRequest[] {
    return this.#seen
  }

  add(request: SeenRequest): void {
    this.#seen.push(request)
    if (this.#seen.length > remembered) this.#seen.shift()
    this.#added.announce(request)
  }

  /** The next request that `match` accepts; those seen already do not count. */
  next(match: (request: SeenRequest) => boolean): Promise<SeenRequest> {
    const { promise, resolve } = Promise.withResolvers<SeenRequest>()
    const waiting = this.#added.listen((request) => {
      if (match(request)) resolve(request)
    })
    return promise.finally(() => waiting[Symbol.dispose]())
  }
}
