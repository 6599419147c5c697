import { CertificateAuthority } from '../../../src/certificates/authority.ts'
import { poolDefinition } from '../../../src/cluster/crd/definition.ts'
import { controllersOf } from '../../../src/cluster/admission/actors.ts'
import { serveWebhooks } from '../../../src/cluster/serve.ts'
import type { WebhookTarget } from '../../../src/cluster/target.ts'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import { listAt, objectAt, textAt } from '../../../src/api/kube/json-at.ts'
import type { NodePool } from '../../../src/api/kube/node-pool.ts'
import type { ApiClient, Answer } from '../../kit/cluster/api-client.ts'
import { until } from '../../kit/until.ts'
import type { Scope } from '../../kit/cluster/workspace.ts'
import { freePort } from '../../kit/free-port.ts'

export const controller = 'system:serviceaccount:nodehub-system:nodehub-cluster'

export const controllers = controllersOf({ namespace: 'nodehub-system', name: 'nodehub-cluster' })

const pools = '/apis/apps.openyurt.io/v1beta2/nodepools'

/** Where objects of these kinds are. */
const collections: Readonly<Record<string, string>> = {
  CustomResourceDefinition: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
  MutatingWebhookConfiguration:
    '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations',
  ValidatingWebhookConfiguration:
    '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
  ValidatingAdmissionPolicy: '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies',
  ValidatingAdmissionPolicyBinding:
    '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings',
}

/** An object as the API server answered with it, or the Status. */
export const bodyOf = (answer: Answer): JsonObject =>
  JSON.parse(answer.body.toString()) as JsonObject

/** Creates what is not there; throws with the answer where that fails. */
export async function install(admin: ApiClient, objects: readonly object[]): Promise<void> {
  for (const object of objects) {
    const kind = textAt(object as JsonObject, 'kind')
    const answer = await admin.post(collections[kind] ?? kind, object)
    if (answer.status !== 201)
      throw new Error(`${kind}: ${answer.status} ${answer.body.toString()}`)
  }
}

export async function uninstall(admin: ApiClient, objects: readonly object[]): Promise<void> {
  for (const object of objects.toReversed()) {
    const path = collections[textAt(object as JsonObject, 'kind')]
    await admin.send('DELETE', `${path}/${textAt(object as JsonObject, 'metadata', 'name')}`)
  }
}

export interface Webhooks {
  readonly target: WebhookTarget
  /**
   * Whether pods are given the network of the pool that they name; counts from the next review on.
   */
  propagate: boolean
  start(): Promise<void>
  stop(): Promise<void>
}

/**
 * Webhooks that ask the API server itself about pools, on a port of their own. They do not run yet.
 */
export async function webhooksFor(
  t: Scope,
  admin: ApiClient,
  propagate = false,
): Promise<Webhooks> {
  const authority = await CertificateAuthority.create('webhooks')
  const { certificate, key } = await authority.issue({
    commonName: 'webhooks',
    usage: 'server',
    ipAddresses: ['127.0.0.1'],
  })
  const port = await freePort()
  let listener: { close(graceMs: number): Promise<void> } | undefined
  const stop = async (): Promise<void> => {
    await listener?.close(0)
    listener = undefined
  }
  t.teardown(stop)
  const webhooks: Webhooks = {
    propagate,
    target: { at: { url: `https://127.0.0.1:${port}` }, caBundle: authority.certificate },
    stop,
    start: async () => {
      listener = await serveWebhooks({
        address: '127.0.0.1',
        port,
        certificate: () => ({ certificate, key }),
        get propagate() {
          return webhooks.propagate
        },
        onFailed: (cause) => t.comment(cause),
        lookup: {
          pool: async (name) => {
            const answer = await admin.get(`${pools}/${name}`)
            return answer.status === 200 ? (bodyOf(answer) as unknown as NodePool) : undefined
          },
          poolNodes: async (name) => {
            const selector = encodeURIComponent(`apps.openyurt.io/nodepool=${name}`)
            const answer = await admin.get(`/api/v1/nodes?labelSelector=${selector}`)
            return listAt(bodyOf(answer), 'items').length
          },
          nodeLabels: async (name) => {
            const answer = await admin.get(`/api/v1/nodes/${name}`)
            const labels = objectAt(bodyOf(answer), 'metadata', 'labels')
            return answer.status === 200 ? (labels as Record<string, string>) : undefined
          },
          context: async () => ({ pools: new Map(), namespaces: new Map() }),
        },
      })
    },
  }
  return webhooks
}

/** The definition, served. */
export async function installPools(
  admin: ApiClient,
  target: WebhookTarget,
  definition: object = poolDefinition(target),
): Promise<void> {
  await install(admin, [definition])
  await until('pools to be served', async () => (await admin.get(pools)).status === 200)
}
