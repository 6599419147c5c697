import { isDeepStrictEqual } from 'node:util'
import type { Workspace } from '../kit/cluster/workspace.ts'
import { until } from '../kit/until.ts'
import { type Held, Reflectors, type ReflectorsOptions } from './reflectors.ts'

type Shown = Readonly<Record<string, Held>>

export const followed = ['pods', 'configmaps', 'secrets', 'services', 'endpointslices']

/**
 * Programs with client-go's reflectors, one with WatchLists and one with lists, behind a hub, and a
 * witness straight at an API server to which nothing happens. What is compared is what came after
 * `begin`.
 */
export class Informers {
  readonly #witness: Reflectors
  readonly #informers: readonly Reflectors[]
  #begun: readonly Shown[] = []
  #from: Readonly<Record<string, bigint>> = {}

  constructor(
    workspace: Workspace,
    program: string,
    kubeconfigs: { readonly hub: string; readonly witness: string },
  ) {
    const start = (options: Omit<ReflectorsOptions, 'program' | 'follow'>): Reflectors =>
      new Reflectors(workspace, { program, follow: followed, ...options })
    const behind = { kubeconfig: kubeconfigs.hub, userAgent: 'kube-proxy/v1.36.0' }
    this.#informers = [
      start({ ...behind, encoding: 'protobuf', watchList: true }),
      start({ ...behind, encoding: 'json', watchList: false }),
    ]
    this.#witness = start({
      kubeconfig: kubeconfigs.witness,
      userAgent: 'witness/1.0',
      encoding: 'protobuf',
      watchList: false,
    })
  }

  /** Resolves when informers hold what the witness holds. */
  async begin(): Promise<void> {
    await until('the informers to hold what is there', async () => {
      const there = await this.#witness.show()
      const shown = await this.#show()
      this.#begun = shown
      this.#from = Object.fromEntries(
        Object.entries(there).map(([resource, { objects }]) => [
          resource,
          Object.values(objects)
            .map(BigInt)
            .reduce((a, b) => (a > b ? a : b), 0n),
        ]),
      )
      return shown.every((each) =>
        followed.every((resource) => {
          const [here, witnessed] = [each[resource], there[resource]]
          const isListed = Boolean(here?.resourceVersion && witnessed?.resourceVersion)
          return isListed && isDeepStrictEqual(here?.objects, witnessed?.objects)
        }),
      )
    })
  }

  /**
   * Resolves when the witness was told that the ConfigMap `last` is deleted, and each informer the
   * same events in the same order; after a while to what differs.
   */
  async differences(last: string): Promise<string[]> {
    let found: string[] = []
    await until(
      'the informers to have had all events',
      async () => {
        const there = await this.#events(this.#witness)
        const all = await Promise.all(this.#informers.map((each) => this.#events(each)))
        found = all.flatMap((events, at) => differing(`informer ${at}`, events, there))
        const isOver = there.some((event) => event.includes(`DELETED default/${last} `))
        return isOver && found.length === 0
      },
      { seconds: 60 },
    ).catch(() => undefined)
    return found
  }

  /** Lists and early watches since the last time. */
  async begun(): Promise<string[]> {
    const before = this.#begun
    this.#begun = await this.#show()
    return this.#begun.flatMap((each, at) =>
      Object.entries(each).flatMap(([resource, { lists, watchLists, early }]) => {
        const was = before[at]?.[resource] ?? { lists: 0, watchLists: 0, early: 0 }
        const more = [
          [lists - was.lists, 'lists'],
          [watchLists - was.watchLists, 'WatchLists'],
          [early - was.early, 'early watches'],
        ] as const
        return more.flatMap(([count, what]) =>
          count > 0 ? `informer ${at}: ${count} ${what} of ${resource}` : [],
        )
      }),
    )
  }

  /** How many events the witness was told. */
  async events(): Promise<number> {
    return (await this.#events(this.#witness)).length
  }

  stop(): Promise<unknown> {
    return Promise.all([this.#witness, ...this.#informers].map((each) => each.stop()))
  }

  #show(): Promise<readonly Shown[]> {
    return Promise.all(this.#informers.map((each) => each.show()))
  }

  /** What one was told after `begin`. */
  async #events(reflectors: Reflectors): Promise<string[]> {
    return Object.entries(await reflectors.events()).flatMap(([resource, events]) =>
      events
        .filter((event) => BigInt(event.split(' ')[2] ?? 0) > (this.#from[resource] ?? 0n))
        .map((event) => `${resource} ${event}`),
    )
  }
}

function differing(who: string, told: readonly string[], there: readonly string[]): string[] {
  const at = there.findIndex((event, index) => told[index] !== event)
  if (at < 0 && told.length === there.length) return []
  const index = at < 0 ? there.length : at
  return [`${who}: ${told[index] ?? 'nothing'} in place of ${there[index] ?? 'nothing'}`]
}
