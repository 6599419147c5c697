import { createServer, connect as dial, type Socket } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { clusterManifests } from '../../src/cluster/install/manifests.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { valueAt, textAt, withAt } from '../../src/api/kube/json-at.ts'
import { ApiClient } from '../kit/cluster/api-client.ts'
import { Daemon } from '../kit/cluster/daemon.ts'
import { plainNode } from '../kit/cluster/plain-node.ts'
import type { Scope } from '../kit/cluster/workspace.ts'
import type { ControlPlane } from '../kit/control-plane.ts'
import { freePort } from '../kit/free-port.ts'

export const installed = { name: 'nodehub-cluster', namespace: 'nodehub-system' }

const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts')

/**
 * One `nodehub cluster`, in a process of its own, with no more rights than its service account has.
 */
export interface Replica {
  readonly daemon: Daemon
  readonly webhookPort: number
  /** What `/metrics` says of a name, labels added up. */
  metric(name: string): Promise<number>
}

export interface ReplicaSet {
  readonly replicas: readonly Replica[]
  /** The one that leads, if one does. */
  leader(): Promise<Replica | undefined>
  /** Ends the connections that API servers have to the webhooks. */
  cut(): void
}

/**
 * All that `nodehub manifests --part cluster` prints but what takes a scheduler, and two replicas
 * behind a balancer that stands for its Service: the API server finds it as an external name.
 */
export async function startReplicas(
  t: Scope,
  plane: ControlPlane,
  flags: readonly string[] = [],
): Promise<ReplicaSet> {
  const servicePort = await freePort()
  for (const object of clusterManifests({
    ...installed,
    image: 'nodehub:1',
    podHostNetwork: false,
  }) as readonly JsonObject[]) {
    const made = object['kind'] === 'Service' ? serviceAt(object) : led(object, servicePort)
    const path = pathOf(made)
    if (path === undefined) continue
    const answer = await plane.admin.post(path, made)
    if (answer.status !== 201)
      throw new Error(`${path}: ${answer.status} ${answer.body.toString().slice(0, 500)}`)
  }
  const user = {
    commonName: `system:serviceaccount:${installed.namespace}:${installed.name}`,
    organizations: ['system:serviceaccounts'],
  }
  const kubeconfig = plane.kubeconfig(user)
  const replicas = await Promise.all(
    [1, 2].map((number) => startReplica(plane, number, kubeconfig, flags)),
  )
  const cut = await balance(t, servicePort, replicas)
  return {
    replicas,
    cut,
    leader: async () => {
      for (const replica of replicas)
        if (replica.daemon.running && (await replica.metric('nodehub_cluster_leading')) === 1)
          return replica
      return undefined
    },
  }
}

async function startReplica(
  plane: ControlPlane,
  number: number,
  kubeconfig: string,
  flags: readonly string[],
): Promise<Replica> {
  const [webhookPort, opsPort] = [await freePort(), await freePort()]
  const ops = new ApiClient(`http://127.0.0.1:${opsPort}`)
  const [command, args] = plainNode(
    main,
    'cluster',
    `--kubeconfig=${kubeconfig}`,
    `--namespace=${installed.namespace}`,
    '--webhook-address=127.0.0.1',
    `--webhook-port=${webhookPort}`,
    '--ops-address=127.0.0.1',
    `--ops-port=${opsPort}`,
    ...flags,
  )
  const daemon = new Daemon(plane.workspace, `replica-${number}`, {
    command,
    args,
    ready: async () => (await ops.get('/readyz')).status === 200,
  })
  return {
    daemon: await daemon.start(),
    webhookPort,
    metric: async (name) => {
      const text = (await ops.get('/metrics')).body.toString()
      return text
        .split('\n')
        .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
        .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
    },
  }
}

/**
 * As a Service does: each connection goes to one that takes it. Returns what ends all there are.
 */
async function balance(t: Scope, port: number, replicas: readonly Replica[]): Promise<() => void> {
  let turn = 0
  const open = new Set<Socket>()
  const server = createServer((client) => {
    const attempt = (left: number): void => {
      const { webhookPort } = replicas[turn++ % replicas.length] ?? { webhookPort: 0 }
      const upstream = dial(webhookPort, '127.0.0.1')
      const failed = (): unknown => (left > 1 ? attempt(left - 1) : client.destroy())
      upstream.once('error', failed)
      upstream.once('connect', () => {
        upstream.off('error', failed)
        upstream.on('error', () => client.destroy())
        client.pipe(upstream).pipe(client)
      })
      client.once('close', () => upstream.destroy())
    }
    open.add(client)
    client.once('close', () => open.delete(client))
    client.on('error', () => undefined)
    attempt(replicas.length)
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  return () => {
    for (const client of open) client.destroy()
  }
}

const serviceAt = (service: JsonObject): JsonObject => ({
  ...service,
  spec: { type: 'ExternalName', externalName: 'localhost' },
})

/** Where it names the Service's port, with that of the balancer. */
function led(object: JsonObject, port: number): JsonObject {
  const conversion = ['spec', 'conversion', 'webhook', 'clientConfig', 'service', 'port']
  if (valueAt(object, ...conversion) !== undefined) return withAt(object, conversion, port)
  const webhooks = object['webhooks'] as readonly JsonObject[] | undefined
  if (webhooks === undefined) return object
  return {
    ...object,
    webhooks: webhooks.map((webhook) => withAt(webhook, ['clientConfig', 'service', 'port'], port)),
  }
}

const places: Readonly<Record<string, string>> = {
  Namespace: '/api/v1/namespaces',
  ServiceAccount: '/api/v1/serviceaccounts',
  Service: '/api/v1/services',
  ClusterRole: '/apis/rbac.authorization.k8s.io/v1/clusterroles',
  ClusterRoleBinding: '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
  Role: '/apis/rbac.authorization.k8s.io/v1/roles',
  RoleBinding: '/apis/rbac.authorization.k8s.io/v1/rolebindings',
  CustomResourceDefinition: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
  ValidatingAdmissionPolicy: '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies',
  ValidatingAdmissionPolicyBinding:
    '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings',
  MutatingWebhookConfiguration:
    '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations',
  ValidatingWebhookConfiguration:
    '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
}

/** `undefined` for what nobody here would run. */
function pathOf(object: JsonObject): string | undefined {
  const place = places[textAt(object, 'kind')]
  const namespace = textAt(object, 'metadata', 'namespace')
  if (place === undefined || namespace === '') return place
  const slash = place.lastIndexOf('/')
  return `${place.slice(0, slash)}/namespaces/${namespace}${place.slice(slash)}`
}
