import type { Encoding } from '../../src/api/kube/media-type.ts'
import type { Random } from '../fuzz/random.ts'
import { objectOf } from '../kit/client.ts'
import { pod, pods, podsOfNode, secrets, type CloudServer } from '../kit/cloud.ts'
import type { ChildHub } from '../kit/hub-child.ts'
import type { Disk } from './disk.ts'
import { Reflector, Wrong } from './reflector.ts'
import { fillingOf, stateOf, Truth } from './truth.ts'

export interface Reader {
  readonly encoding: Encoding
  readonly truth: Truth
  readonly reflector: Reflector
}

/** A hub with four clients, which lists and watches go through, from one death to the next. */
export class Life {
  readonly #cloud: CloudServer
  readonly #hub: ChildHub
  readonly #disk: Disk
  readonly #truths: readonly Truth[]
  readonly readers: readonly Reader[]

  constructor(cloud: CloudServer, hub: ChildHub, disk: Disk) {
    this.#cloud = cloud
    this.#hub = hub
    this.#disk = disk
    const podsThere = new Truth(cloud, pods, (name, filling) => {
      const made = pod(name)
      const metadata = { ...(made['metadata'] as object), annotations: fillingOf(filling, 3_000) }
      return { ...made, metadata }
    })
    const secretsThere = new Truth(cloud, secrets, (name, filling) => ({
      metadata: { name, namespace: 'default', annotations: fillingOf(filling, 300) },
      data: {},
    }))
    this.#truths = [podsThere, secretsThere]
    const readers = (encoding: Encoding): Reader[] => [
      { encoding, truth: podsThere, reflector: new Reflector(podsOfNode, podsThere) },
      {
        encoding,
        truth: secretsThere,
        reflector: new Reflector('/api/v1/namespaces/default/secrets', secretsThere),
      },
    ]
    this.readers = [...readers('json'), ...readers('protobuf')]
    for (const truth of this.#truths)
      for (let i = 0; i < 12; i++) truth.set(`first-${i}`, 'at the beginning')
  }

  /**
   * Lets things happen that the hub records, and ends when it has been killed: at its `step`th
   * step, or, where that is 0 or it has not so many, when all is done. Returns how many it took to
   * do all; `undefined` where it did not come to that.
   */
  async die(kind: 'events' | 'lists', step: number, random: Random): Promise<number | undefined> {
    for (const { encoding, reflector } of this.readers) {
      const client = this.#hub.as('kubelet', { encoding })
      if (reflector.version === 0) await reflector.list(client)
      if (kind === 'lists') continue
      await reflector.watch(client)
      if (!reflector.expired) continue
      await reflector.list(client)
      await reflector.watch(client)
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
      const lists = this.readers.map(({ encoding, reflector }) =>
        reflector.list(this.#hub.as('kubelet', { encoding })),
      )
      const results = await Promise.allSettled(lists)
      for (const result of results)
        if (result.status === 'rejected' && result.reason instanceof Wrong) throw result.reason
    }
    const took = this.#disk.count('steps') - before
    const done = this.readers.every(({ reflector, truth }) => reflector.version >= truth.version)
    this.#disk.killAt(0)
    await this.#hub.crash()
    for (const { reflector } of this.readers) {
      await reflector.hangUp()
      if (reflector.wrong) throw reflector.wrong
    }
    return done ? took : undefined
  }

  /** Starts it again: without a cloud at first, when all has to be there that was shown. */
  async comeBack(random: Random): Promise<void> {
    await this.#cloud.unplug()
    // What happens meanwhile is told once it is back.
    if (random.once(2)) this.#change(random, 2)
    await this.#hub.start()
    for (const reader of this.readers) {
      const { encoding, reflector, truth } = reader
      const client = this.#hub.as('kubelet', { encoding })
      const was = reflector.version
      const alone = new Reflector(reflector.path, truth)
      alone.version = was
      await alone.list(client)
      await reflector.watch(client)
      await reflector.until(alone.version)
      await reflector.hangUp()
      if (reflector.wrong) throw reflector.wrong
      if (reflector.expired) reflector.version = was
      else if (reflector.version < alone.version)
        throw new Error(
          `${reflector.path}: the watch ended at ${reflector.version} of ${alone.version}`,
        )
      reflector.expired = false
      await this.#single(reader, alone.version, [`n-${random.below(20)}`, `n-${random.below(20)}`])
    }
    await this.#cloud.plug()
    await this.#hub.online()
  }

  /**
   * What is asked for by name is what the list at `version` holds of it, and nothing where that
   * holds nothing.
   */
  async #single(
    { encoding, truth, reflector: { path } }: Reader,
    version: number,
    names: readonly string[],
  ): Promise<void> {
    const folder = path.includes('secrets') ? 'secrets' : 'pods'
    const there = truth.at(version)
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
    await Promise.all(this.readers.map(({ reflector, truth }) => reflector.until(truth.version)))
  }

  #change(random: Random, times: number): void {
    for (const truth of this.#truths) {
      for (let i = 0; i < times; i++) {
        const name = `n-${random.below(20)}`
        if (truth.names.includes(name) && random.once(2)) truth.delete(name)
        else truth.set(name, `number ${random.next()}`)
      }
    }
  }
}
