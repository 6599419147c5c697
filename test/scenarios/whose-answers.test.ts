import t from 'tap'
import { configMaps } from '../kit/cloud.ts'
import { startOnlineHub, goOffline, startCloud } from '../kit/hub.ts'
import type { Teardown } from '../kit/wire/wire.ts'

/** What yurthub caches for by default (pkg/yurthub/util/util.go DefaultCacheAgents). */
const yurthubs = [
  'kubelet',
  'kube-proxy',
  'flanneld',
  'coredns',
  'raven-agent-ds',
  'yurttunnel-agent',
  'yurthub',
]

const pathOf = (component: string): string => `/api/v1/namespaces/default/configmaps/${component}`

/**
 * Each reads an object nobody else does; then the cloud goes. Resolves to what each is answered.
 */
async function answeredOffline(
  t: Teardown,
  components: readonly string[],
  flags: readonly string[] = [],
): Promise<Record<string, number>> {
  const cloud = await startCloud(t)
  for (const name of components) {
    cloud.sandbox.create(configMaps, { metadata: { name, namespace: 'default' } })
  }
  const hub = await startOnlineHub(t, { upstreams: [cloud], flags })
  for (const component of components) await hub.as(component).get(pathOf(component))
  await goOffline(cloud, hub)
  const statuses = components.map(async (component) => {
    const { status } = await hub.as(component).get(pathOf(component))
    return [component, status] as const
  })
  return Object.fromEntries(await Promise.all(statuses))
}

void t.test(
  'components that yurthub caches for are answered offline by default, others not',
  async (t) => {
    t.strictSame(await answeredOffline(t, [...yurthubs, 'operator']), {
      ...Object.fromEntries(yurthubs.map((component) => [component, 200])),
      operator: 503,
    })
  },
)

void t.test('with --cache-components=* every component is', async (t) => {
  const flags = ['--cache-components=*']
  t.strictSame(await answeredOffline(t, ['operator', 'anything'], flags), {
    operator: 200,
    anything: 200,
  })
})
