import type { CloudServer } from '../kit/cloud.ts'

/** What the hub can know of the cloud. */
export type LinkState =
  /** It is there, and the hub knows it. */
  | 'online'
  /** It is gone, whether the hub knows it already or not. */
  | 'offline'
  /** It is reachable, or was a moment ago: a request may be refused. */
  | 'unclear'

/** The link between the hub and the cloud, and what goes wrong on it. */
export class Link {
  readonly #cloud: CloudServer
  #down: Disposable | undefined
  #frozen: Disposable | undefined
  #behind = false
  #state: LinkState = 'unclear'
  /** Another one whenever anything has changed. */
  epoch = 0

  constructor(cloud: CloudServer) {
    this.#cloud = cloud
  }

  get state(): LinkState {
    return this.#state
  }

  get isDown(): boolean {
    return this.#down !== undefined
  }

  get isFrozen(): boolean {
    return this.#frozen !== undefined
  }

  /** Only the API server that lags is there. */
  get isBehind(): boolean {
    return this.#behind
  }

  is(state: LinkState): void {
    this.#state = state
    this.epoch++
  }

  cut(): void {
    this.#down ??= this.#cloud.sandbox.faults.reset()
    this.is(this.isFrozen ? 'unclear' : 'offline')
  }

  mend(): void {
    this.#down?.[Symbol.dispose]()
    this.#down = undefined
    this.is('unclear')
  }

  /** Connections that there are are reset. */
  shake(): void {
    if (this.isDown) return
    this.#cloud.sandbox.faults.reset()[Symbol.dispose]()
    this.is('unclear')
  }

  freeze(): void {
    this.#frozen ??= this.#cloud.sandbox.faults.freeze()
    this.is('unclear')
  }

  thaw(): void {
    this.#frozen?.[Symbol.dispose]()
    this.#frozen = undefined
    this.is(this.isDown ? 'offline' : 'unclear')
  }

  async fallBehind(): Promise<void> {
    await this.#cloud.unplug()
    this.#behind = true
    this.is(this.isDown ? this.#state : 'unclear')
  }

  async catchUp(): Promise<void> {
    await this.#cloud.plug()
    this.#behind = false
    this.is(this.isDown ? this.#state : 'unclear')
  }
}
