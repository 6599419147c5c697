import { ApiClient } from '../../test/kit/cluster/api-client.ts'
import type { Target } from '../load/target.ts'
import { nodeName } from './upstream.ts'

export const podNamespace = 'seed'

/** Enough for a list of 4 MB in JSON. */
const podCount = 500

export const podPaths = (count = podCount): readonly string[] =>
  Array.from({ length: count }, (_, at) => `/api/v1/namespaces/${podNamespace}/pods/seed-${at}`)

/** What the kubelet lists and watches. */
export const podsOfNode = `/api/v1/pods?fieldSelector=spec.nodeName%3D${nodeName}`

/** Makes the node and its pods, of about 8 KB each in JSON, which run on the pods' network. */
export async function seed(admin: Target, count = podCount): Promise<void> {
  await createAll(admin, [
    ['/api/v1/nodes', { metadata: { name: nodeName } }],
    ['/api/v1/namespaces', { metadata: { name: podNamespace } }],
  ])
  // Pods are refused until their service account is there.
  await createAll(admin, [
    [`/api/v1/namespaces/${podNamespace}/serviceaccounts`, { metadata: { name: 'default' } }],
  ])
  await createAll(
    admin,
    Array.from({ length: count }, (_, at) => [
      `/api/v1/namespaces/${podNamespace}/pods`,
      pod(`seed-${at}`, at, nodeName),
    ]),
  )
  await sendAll(
    admin,
    'PATCH',
    podPaths(count).map((path, at) => [`${path}/status`, { status: runningAt(at) }]),
  )
}

/** As a kubelet writes it. */
function runningAt(at: number): object {
  const [hostIP, podIP] = ['10.0.0.1', `10.244.${at >> 8}.${at & 255}`]
  return { phase: 'Running', hostIP, hostIPs: [{ ip: hostIP }], podIP, podIPs: [{ ip: podIP }] }
}

/** A client of `target` with the certificate that it names. */
export const clientOf = ({ url, ca, certificate, key }: Target): ApiClient =>
  new ApiClient(url, {
    ...(ca !== undefined && { ca }),
    ...(certificate !== undefined && key !== undefined && { credentials: { certificate, key } }),
  })

/** How many objects are made at a time: an API server waits for its disk. */
const atATime = 8

type Sent = readonly (readonly [path: string, object: object])[]

/** Makes objects at the API server, each at its collection. Throws where one is refused. */
export const createAll = (target: Target, objects: Sent): Promise<void> =>
  sendAll(target, 'POST', objects)

async function sendAll(target: Target, method: 'POST' | 'PATCH', objects: Sent): Promise<void> {
  const client = clientOf(target)
  let next = 0
  const create = async (): Promise<void> => {
    for (let each = objects[next++]; each !== undefined; each = objects[next++]) {
      const [path, object] = each
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
      const { status, body } = await client.send(method, path, JSON.stringify(object), type)
      if (status >= 300)
        throw new Error(`${method} ${path}: ${status} ${body.toString().slice(0, 300)}`)
    }
  }
  try {
    await Promise.all(Array.from({ length: atATime }, create))
  } finally {
    client.close()
  }
}

/**
 * Of about 8 KB in JSON, with many variables, as real pods have them: each also makes a managed
 * field.
 */
export const pod = (name: string, at: number, nodeName: string): object => ({
  metadata: {
    name,
    labels: { app: `app-${at % 20}` },
    annotations: { note: 'y'.repeat(200) },
  },
  spec: {
    nodeName,
    automountServiceAccountToken: false,
    tolerations: [{ operator: 'Exists' }],
    containers: [
      {
        name: 'main',
        image: 'app:1',
        env: Array.from({ length: 25 }, (_, n) => ({
          name: `VARIABLE_${n}`,
          value: 'x'.repeat(40),
        })),
        ports: [{ containerPort: 8080 }],
        resources: { requests: { cpu: '1m' } },
      },
    ],
  },
})
