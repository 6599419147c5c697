import { shared, write, type RequestCase } from './request-case.ts'
import type { Clients } from './compare.ts'
import type { Client, RawResponse } from './client.ts'
import { until } from '../kit/until.ts'

/**
 * Creates the objects to read, and a namespace for each client to write in. Resolves with the token
 * of a service account that has nearly no rights.
 */
export async function prepare({ direct, through }: Clients): Promise<string> {
  for (const request of fixtures) await made(direct, request)
  for (const { namespace } of [direct, ...through]) {
    for (const request of namespaceOf(namespace)) await made(direct, request)
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

async function made(client: Client, request: RequestCase): Promise<RawResponse> {
  const response = await client.ask(request)
  if (response?.status !== 201) {
    throw new Error(`${request.target}: ${response?.line} ${response?.body.slice(0, 500)}`)
  }
  return response
}

/** A custom resource is served a moment after its definition is created. */
async function served(client: Client, target: string): Promise<void> {
  await until(`${target} to be served`, async () => (await client.ask({ target }))?.status === 200)
}

const core = `/api/v1/namespaces/${shared}`
const widgets = `/apis/example.com/v1/namespaces/${shared}/widgets`

const namespaceOf = (name: string): readonly RequestCase[] => [
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

const fixtures: readonly RequestCase[] = [
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
