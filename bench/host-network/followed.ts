import type { JsonObject } from '../../src/api/kube/json.ts'
import { pause, within } from '../../src/base/clock.ts'
import { connect } from '../../src/cluster/api/connect.ts'
import { apiInformer } from '../../src/cluster/api/informer.ts'
import type { Scope } from '../../test/kit/cluster/workspace.ts'
import { administrator, type ControlPlane } from '../../test/kit/control-plane.ts'

/** The pods and events of a cluster, as its API server tells of them. */
export interface Followed {
  readonly pods: (namespace: string) => readonly JsonObject[]
  readonly events: (namespace: string) => readonly JsonObject[]
  /** Resolves at the next change, or after `ms`; after a moment at the earliest. */
  readonly changed: (ms: number) => Promise<void>
}

const leastMs = 50

/** Begins to follow them; ends with the scope. */
export async function follow(t: Scope, plane: ControlPlane): Promise<Followed> {
  const access = { kind: 'kubeconfig', file: plane.kubeconfig(administrator) } as const
  const connected = await connect({ access, namespace: '' })
  t.teardown(async () => connected[Symbol.asyncDispose]())
  let next = Promise.withResolvers<void>()
  const onChange = (): void => {
    next.resolve()
    next = Promise.withResolvers()
  }
  const informers = ['pods', 'events'].map((resource) => {
    const path = `/api/v1/${resource}`
    return apiInformer(connected.api, { path, transform: (object) => object, onChange })
  })
  for (const each of informers) t.teardown(() => each[Symbol.asyncDispose]())
  await Promise.all(informers.map(({ listed }) => listed))
  const [pods, events] = informers.map(
    ({ items }) =>
      (namespace: string) =>
        [...items].flatMap(([key, object]) => (key.startsWith(`${namespace}/`) ? [object] : [])),
  )
  if (!pods || !events) throw new Error('both are followed')
  return {
    pods,
    events,
    async changed(ms) {
      const { promise } = next
      await pause(leastMs)
      await within(ms - leastMs, promise)
    },
  }
}
