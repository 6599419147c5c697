import { networkInterfaces as presentInterfaces } from 'node:os'
import type { Logger } from 'pino'
import { every } from '../../base/clock.ts'
import {
  addressArguments,
  InterfaceFault,
  ip,
  networkInterfaces,
  type NetworkInterface,
} from '../../base/iproute2.ts'
import { canonical } from '../../base/listening-sockets.ts'
import type { DummyInterfaceConfig } from '../../config/dummy-interface.ts'

interface DummyInterfaceParts {
  readonly rootDir: string
  /** Called with each change: why pods cannot reach the hub there, `undefined` when they can. */
  readonly settled: (why: string | undefined) => void
  readonly log: Logger
}

/** How often the interface is looked at, and where it is missing made again. */
const againMs = 60_000

/** The longest alias that the kernel keeps (IFALIASZ). */
const longestAlias = 255

/**
 * The interface of a node at whose address all its pods reach the hub: made by the hub, or used as
 * it is found. The hub marks the one that it makes with an alias, so that it knows its own after a
 * crash. It removes no other one.
 */
export class DummyInterface implements AsyncDisposable {
  readonly #parts: DummyInterfaceParts
  readonly #wanted: DummyInterfaceConfig
  readonly #mark: string
  #why: string | undefined = 'not made yet'
  #isFirst = true
  #isOwn = false
  #busy = Promise.resolve()
  #timer: Disposable | undefined
  #listen: (address: string) => Promise<void> = () => Promise.resolve()

  constructor(wanted: DummyInterfaceConfig, parts: DummyInterfaceParts) {
    this.#parts = parts
    this.#wanted = wanted
    this.#mark = `made by nodehub --root-dir=${parts.rootDir}`.slice(0, longestAlias)
  }

  /**
   * Makes the interface, and keeps it there. `listen` listens at its address where the hub does not
   * yet, and rejects where it cannot.
   */
  open(listen: (address: string) => Promise<void>): void {
    this.#listen = listen
    this.#timer = every(againMs, () => void this.check())
    void this.check()
  }

  /** Makes the interface again, and listens there, where either is missing. */
  check(): Promise<void> {
    return (this.#busy = this.#busy.then(() => this.#ensure()))
  }

  /** For `/readyz?verbose`: it does not affect readiness. */
  verboseLine(): string {
    const { name, address } = this.#wanted
    return this.#why === undefined
      ? `[+]dummy-interface ${name} has ${address}`
      : `[ ]dummy-interface ${this.#why}`
  }

  async #ensure(): Promise<void> {
    if (this.#timer === undefined) return
    const { name, address } = this.#wanted
    try {
      if (this.#isFirst || !this.#isPresent()) await this.#make()
      await this.#listen(address)
      this.#settle(undefined)
    } catch (cause) {
      this.#settle(`the hub does not listen at ${address} on ${name}: ${(cause as Error).message}`)
    }
  }

  #settle(why: string | undefined): void {
    const { log, settled } = this.#parts
    const isNews = this.#isFirst || why !== this.#why
    this.#isFirst = false
    this.#why = why
    if (!isNews) return
    if (why === undefined)
      log.info({ ...this.#wanted, made: this.#isOwn }, 'pods have an interface')
    else log.warn(`${why}; the hub serves without, and tries again`)
    settled(why)
  }

  /** Whether the interface has its address and is up, which can be seen without `ip`. */
  #isPresent(): boolean {
    const { name, address } = this.#wanted
    const found = presentInterfaces()[name] ?? []
    return found.some((each) => canonical(each.address) === address)
  }

  /** Makes the missing parts of the interface. Rejects with the reason where it cannot be used. */
  async #make(): Promise<void> {
    const { name, address } = this.#wanted
    const has = (each: NetworkInterface): boolean => each.addresses.map(canonical).includes(address)
    const all = await networkInterfaces().catch((cause: unknown) => {
      if (this.#isPresent()) return undefined
      throw cause
    })
    // Without `ip` there is none that the hub has made.
    if (all === undefined) return
    const other = all.find((each) => each.name !== name && has(each))
    if (other)
      throw new InterfaceFault(`${other.name} has this address; --dummy-if-ip sets another`)
    const found = all.find((each) => each.name === name)
    this.#isOwn = found === undefined || found.alias === this.#mark
    if (found && has(found) && found.isUp) return
    if (found && found.kind !== 'dummy')
      throw new InterfaceFault(`it is a ${found.kind ?? 'device'}; --dummy-if-name sets another`)
    try {
      if (!found) {
        await ip('link', 'add', 'dev', name, 'type', 'dummy')
        await ip('link', 'set', 'dev', name, 'alias', this.#mark)
      }
      if (found?.isUp !== true) await ip('link', 'set', 'dev', name, 'up')
      if (!found || !has(found)) await ip(...addressArguments(name, address))
    } catch (cause) {
      if (!found) await ip('link', 'delete', 'dev', name).catch(() => undefined)
      throw cause
    }
  }

  /** Removes the interface that this hub, or one before it, has made. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#timer?.[Symbol.dispose]()
    this.#timer = undefined
    await this.#busy
    if (!this.#isOwn) return
    const { name } = this.#wanted
    try {
      const found = (await networkInterfaces()).find((each) => each.name === name)
      if (found?.alias === this.#mark) await ip('link', 'delete', 'dev', name)
    } catch (cause) {
      this.#parts.log.warn(`${name} stays: ${(cause as Error).message}`)
    }
  }
}
