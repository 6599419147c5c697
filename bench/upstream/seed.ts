import { ApiClient } from '../../test/kit/cluster/api-client.ts'
import type { Target } from '../load/target.ts'
import { nodeName } from './upstream.ts'

export const podNamespace = 'seed'

/** Enough for a list of 4 MB in JSON. */
export const podCount = 500

export const podPaths: readonly string[] = Array.from(
  { length: podCount },
  (_, at) => `/api/v1/namespaces/${podNamespace}/pods/seed-${at}`,
)

/** What the kubelet lists and watches. */
export const podsOfNode = `/api/v1/pods?fieldSelector=spec.nodeName%3D${nodeName}`

/** Makes the node and its pods, of about 8 KB each in JSON. */
export async function seed(admin: Target): Promise<void> {
  const { create, close } = creator(admin)
  await create('/api/v1/nodes', { metadata: { name: nodeName } })
  await create('/api/v1/namespaces', { metadata: { name: podNamespace } })
  // Pods are refused until their service account is there.
  await create(`/api/v1/namespaces/${podNamespace}/serviceaccounts`, {
    metadata: { name: 'default' },
  })
  for (let at = 0; at < podCount; at += 1)
    await create(`/api/v1/namespaces/${podNamespace}/pods`, pod(`seed-${at}`, at, nodeName))
  close()
}

/** A client of `target` with the certificate that it names. */
export const clientOf = ({ url, ca, certificate, key }: Target): ApiClient =>
  new ApiClient(url, {
    ...(ca !== undefined && { ca }),
    ...(certificate !== undefined && key !== undefined && { credentials: { certificate, key } }),
  })

/** Makes objects at the API server, one after the other. `create` throws where one is refused. */
export function creator(target: Target): {
  create: (path: string, object: unknown) => Promise<void>
  close: () => void
} {
  const client = clientOf(target)
  const create = async (path: string, object: unknown): Promise<void> => {
    const { status, body } = await client.post(path, object)
    if (status !== 201) throw new Error(`POST ${path}: ${status} ${body.toString().slice(0, 300)}`)
  }
  return { create, close: () => client.close() }
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
