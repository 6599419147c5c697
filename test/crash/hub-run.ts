import type { Encoding } from '../../src/api/kube/media-type.ts'
import type { Random } from '../fuzz/random.ts'
import { objectOf } from '../kit/client.ts'
import { pod, pods, podsOfNode, secrets, type CloudServer } from '../kit/cloud.ts'
import type { ChildHub } from '../kit/hub-child.ts'
import type { FaultyDisk } from './disk.ts'
import { CheckingClient, Violation } from './checking-client.ts'
import { fillingOf, stateOf, ResourceHistory } from './resource-history.ts'

export interface Reader {
  readonly encoding: Encoding
  readonly history: ResourceHistory
  readonly checker: CheckingClient
}

/** A hub with four clients, which lists and watches go through, from one death to the next. */
export class HubRun {
  readonly #cloud: CloudServer
  readonly #hub: ChildHub
  readonly #disk: FaultyDisk
  readonly #histories: readonly ResourceHistory[]
  readonly readers: readonly Reader[]

  constructor(cloud: CloudServer, hub: ChildHub, disk: FaultyDisk) {
    this.#cloud = cloud
    this.#hub = hub
    this.#disk = disk
    const podsThere = new ResourceHistory(cloud, pods, (name, filling) => {
      const made = pod(name)
      const metadata = { ...(made['metadata'] as object), annotations: fillingOf(filling, 3_000) }
      return { ...made, metadata }
    })
    const secretsThere = new ResourceHistory(cloud, secrets, (name, filling) => ({
      metadata: { name, namespace: 'default', annotations: fillingOf(filling, 300) },
      data: {},
    }))
    this.#histories = [podsThere, secretsThere]
    const readers = (encoding: Encoding): Reader[] => [
      { encoding, history: podsThere, checker: new CheckingClient(podsOfNode, podsThere) },
      {
        encoding,
        history: secretsThere,
        checker: new CheckingClient('/api/v1/namespaces/default/secrets', secretsThere),
      },
    ]
    this.readers = [...readers('json'), ...readers('protobuf')]
    for (const history of this.#histories)
      for (let i = 0; i < 12; i++) history.set(`first-${i}`, 'at the beginning')
  }

  /**
   * Makes changes that the hub records, and ends when the hub has been killed: at its `step`th
   * step, or, where that is 0 or there are fewer, when all is done. Returns the number of steps for
   * all; `undefined`: it was killed before.
   */
  async die(kind: 'events' | 'lists', step: number, random: Random): Promise<number | undefined> {
    for (const { encoding, checker } of this.readers) {
      const client = this.#hub.as('kubelet', { encoding })
      if (checker.version === 0) await checker.list(client)
      if (kind === 'lists') continue
      await checker.watch(client)
      if (!checker.expired) continue
      await checker.list(client)
      await checker.watch(client)
    }
    if (kind === 'events') await this.#told()
    const before = this.#disk.count('steps')
    if (step > 0) this.#disk.killAt(step)
    const over = this.#hub.gone()
    if (kind === 'events') {
      for (let i = 0; i < 4; i++) {
        this.#change(random, 1)
        if (random.once(2)) await Promise.race([over, this.#told()])
      }
      await Promise.race([over, this.#told()])
    } else {
      this.#change(random, 12)
      const lists = this.readers.map(({ encoding, checker }) =>
        checker.list(this.#hub.as('kubelet', { encoding })),
      )
      const results = await Promise.allSettled(lists)
      for (const result of results)
        if (result.status === 'rejected' && result.reason instanceof Violation) throw result.reason
    }
    const took = this.#disk.count('steps') - before
    const done = this.readers.every(({ checker, history }) => checker.version >= history.version)
    this.#disk.killAt(0)
    await this.#hub.crash()
    for (const { checker } of this.readers) {
      await checker.hangUp()
      if (checker.wrong) throw checker.wrong
    }
    return done ? took : undefined
  }

  /**
   * Starts the hub again: without a cloud at first, when everything that was shown must be there.
   */
  async comeBack(random: Random): Promise<void> {
    await this.#cloud.unplug()
    // Changes made offline are shown once the cloud is back.
    if (random.once(2)) this.#change(random, 2)
    await this.#hub.start()
    for (const reader of this.readers) {
      const { encoding, checker, history } = reader
      const client = this.#hub.as('kubelet', { encoding })
      const was = checker.version
      const alone = new CheckingClient(checker.path, history)
      alone.version = was
      await alone.list(client)
      await checker.watch(client)
      await checker.until(alone.version)
      await checker.hangUp()
      if (checker.wrong) throw checker.wrong
      if (checker.expired) checker.version = was
      else if (checker.version < alone.version)
        throw new Error(
          `${checker.path}: the watch ended at ${checker.version} of ${alone.version}`,
        )
      checker.expired = false
      await this.#single(reader, alone.version, [`n-${random.below(20)}`, `n-${random.below(20)}`])
    }
    await this.#cloud.plug()
    await this.#hub.online()
  }

  /**
   * A get returns what the list at `version` holds of the object, and nothing where that holds
   * nothing.
   */
  async #single(
    { encoding, history, checker: { path } }: Reader,
    version: number,
    names: readonly string[],
  ): Promise<void> {
    const folder = path.includes('secrets') ? 'secrets' : 'pods'
    const there = history.at(version)
    for (const name of names) {
      const one = `/api/v1/namespaces/default/${folder}/${name}`
      const answer = await this.#hub.as('kubelet', { encoding }).get(one)
      const shown = answer.status === 200 ? stateOf(objectOf(answer)) : undefined
      if (shown !== there.get(name))
        throw new Error(
          `${one} is ${shown ?? answer.status}, and ${there.get(name) ?? 'nothing'} in the list`,
        )
    }
  }

  async #told(): Promise<void> {
    await Promise.all(this.readers.map(({ checker, history }) => checker.until(history.version)))
  }

  #change(random: Random, times: number): void {
    for (const history of this.#histories) {
      for (let i = 0; i < times; i++) {
        const name = `n-${random.below(20)}`
        if (history.names.includes(name) && random.once(2)) history.delete(name)
        else history.set(name, `number ${random.next()}`)
      }
    }
  }
}
