import { shared, write, type Asking } from './asking.ts'
import type { Doors } from './comparing.ts'
import type { Door, Heard } from './door.ts'
import { until } from '../kit/until.ts'

/**
 * Makes what is there to be read, and a namespace for each door to write in. Resolves with the
 * token of a service account that may do next to nothing.
 */
export async function prepare({ direct, through }: Doors): Promise<string> {
  for (const asking of furniture) await made(direct, asking)
  for (const { namespace } of [direct, ...through]) {
    for (const asking of namespaceOf(namespace)) await made(direct, asking)
  }
  await served(direct, widgets)
  await made(direct, write('POST', widgets, widget))
  const token = await made(
    direct,
    write('POST', `${core}/serviceaccounts/default/token`, tokenRequest),
  )
  return (JSON.parse(token.body) as { status: { token: string } }).status.token
}

const tokenRequest = {
  apiVersion: 'authentication.k8s.io/v1',
  kind: 'TokenRequest',
  spec: { expirationSeconds: 3600 },
}

async function made(door: Door, asking: Asking): Promise<Heard> {
  const heard = await door.ask(asking)
  if (heard?.status !== 201) {
    throw new Error(`${asking.target}: ${heard?.line} ${heard?.body.slice(0, 500)}`)
  }
  return heard
}

/** A kind of one's own is served a moment after it is made. */
async function served(door: Door, target: string): Promise<void> {
  await until(`${target} to be served`, async () => (await door.ask({ target }))?.status === 200)
}

const core = `/api/v1/namespaces/${shared}`
const widgets = `/apis/example.com/v1/namespaces/${shared}/widgets`

const namespaceOf = (name: string): readonly Asking[] => [
  write('POST', '/api/v1/namespaces', { metadata: { name } }),
  write('POST', `/api/v1/namespaces/${name}/serviceaccounts`, { metadata: { name: 'default' } }),
]

const labels = (at: number): object => ({ tier: at % 2 === 0 ? 'front' : 'back' })

const containers = [{ name: 'main', image: 'registry.example/main:1' }]

const widget = {
  apiVersion: 'example.com/v1',
  kind: 'Widget',
  metadata: { name: 'w', namespace: shared },
  spec: { size: 1 },
}

const furniture: readonly Asking[] = [
  ...namespaceOf(shared),
  write('POST', '/api/v1/nodes', {
    metadata: { name: 'edge-1', labels: { 'kubernetes.io/hostname': 'edge-1' } },
  }),
  // Together they are more than the 128 KiB that an API server sends uncompressed to who takes it
  // compressed. Four of them fit into the hub's window of a watch, which is as large: so the last
  // one is on its way, too, when the hub has no turn before the watch's one second is over.
  ...[1, 2, 3, 4, 5].map((at) =>
    write('POST', `${core}/configmaps`, {
      metadata: { name: `cm-${at}`, labels: labels(at) },
      data: { text: `${at}`.repeat(27_000) },
    }),
  ),
  write('POST', `${core}/secrets`, {
    metadata: { name: 'password' },
    data: { password: 'c2VjcmV0' },
  }),
  ...['a', 'b'].map((name) =>
    write('POST', `${core}/pods`, {
      metadata: { name, labels: { app: name } },
      spec: { nodeName: 'edge-1', containers },
    }),
  ),
  write('POST', `${core}/services`, {
    metadata: { name: 'web' },
    spec: { selector: { app: 'a' }, ports: [{ name: 'http', port: 80 }] },
  }),
  write('POST', `/apis/apps/v1/namespaces/${shared}/deployments`, {
    metadata: { name: 'web' },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: 'web' } },
      template: { metadata: { labels: { app: 'web' } }, spec: { containers } },
    },
  }),
  write('POST', `/apis/coordination.k8s.io/v1/namespaces/${shared}/leases`, {
    metadata: { name: 'l' },
    spec: { holderIdentity: 'edge-1', leaseDurationSeconds: 40 },
  }),
  write('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    metadata: { name: 'widgets.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: {
                spec: { type: 'object', properties: { size: { type: 'integer' } } },
              },
            },
          },
        },
      ],
    },
  }),
]
