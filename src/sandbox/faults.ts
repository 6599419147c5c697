import { Broadcast } from '../base/broadcast.ts'
import type { SeenRequest } from './requests.ts'

/** Which requests a fault strikes. */
export type RequestMatch = (request: SeenRequest) => boolean

/** The faults that can strike a request, in the order in which they act. */
export type Fault =
  | { readonly kind: 'reset' }
  | { readonly kind: 'delay'; readonly ms: number }
  | { readonly kind: 'freeze' }
  | { readonly kind: 'cut'; readonly bytes: number }
  | { readonly kind: 'fail'; readonly status: number; readonly marked: boolean }

interface Rule {
  readonly fault: Fault
  readonly match: RequestMatch | undefined
}

interface FaultyServer {
  /** Resets all connections. */
  reset(): void
  /** Listens again after `close`. */
  open(): Promise<void>
  close(): Promise<void>
}

/** Injects faults. Each lasts until it is disposed of. */
export class Faults {
  readonly #rules = new Set<Rule>()
  readonly #changed = new Broadcast()
  readonly #server: FaultyServer

  constructor(server: FaultyServer) {
    this.#server = server
  }

  /** As if the process had ended: connections are closed and new ones refused. */
  async refuse(): Promise<AsyncDisposable> {
    await this.#server.close()
    return { [Symbol.asyncDispose]: () => this.#server.open() }
  }

  /**
   * Resets connections (RST): all open and future ones or, with a match, those of matching
   * requests.
   */
  reset(match?: RequestMatch): Disposable {
    const fault = this.#add({ kind: 'reset' }, match)
    if (!match) this.#server.reset()
    return fault
  }

  /**
   * Accepts connections and requests, and answers nothing; open streams pause. Disposing resumes
   * everything.
   */
  freeze(match?: RequestMatch): Disposable {
    return this.#add({ kind: 'freeze' }, match)
  }

  /** Breaks the connection after so many bytes of a body. */
  cut(bytes: number, match?: RequestMatch): Disposable {
    return this.#add({ kind: 'cut', bytes }, match)
  }

  /** Delays the handling of a request. */
  delay(ms: number, match?: RequestMatch): Disposable {
    return this.#add({ kind: 'delay', ms }, match)
  }

  /** Answers with an error of the server's own: a Status with an Audit-Id. */
  fail(status: number, match?: RequestMatch): Disposable {
    return this.#add({ kind: 'fail', status, marked: true }, match)
  }

  /**
   * Answers as a load balancer does that reaches no API server: a page in HTML, without an API
   * server's marks.
   */
  failAsGateway(status: number, match?: RequestMatch): Disposable {
    return this.#add({ kind: 'fail', status, marked: false }, match)
  }

  /** The faults that strike a request, or a connection where none is given. */
  striking(request?: SeenRequest): Fault[] {
    return [...this.#rules]
      .filter(({ match }) => (request && match ? match(request) : !match))
      .map(({ fault }) => fault)
  }

  isFrozen(request?: SeenRequest): boolean {
    return this.striking(request).some(({ kind }) => kind === 'freeze')
  }

  /** Calls `onChange` whenever a fault begins or ends, until disposed. */
  follow(onChange: () => void): Disposable {
    return this.#changed.listen(onChange)
  }

  #add(fault: Fault, match: RequestMatch | undefined): Disposable {
    const rule: Rule = { fault, match }
    this.#rules.add(rule)
    this.#changed.announce()
    return {
      [Symbol.dispose]: () => {
        if (this.#rules.delete(rule)) this.#changed.announce()
      },
    }
  }
}
