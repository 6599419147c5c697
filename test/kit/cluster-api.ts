import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ApiRequest, ApiServer } from '../../src/cluster/api/api-server.ts'
import { connect } from '../../src/cluster/api/connect.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { startSandbox, type Sandbox, type SandboxOptions } from '../../src/sandbox/sandbox.ts'
import { customResources } from './admission-kinds.ts'
import type { Teardown } from './wire/wire.ts'

const version = (name: string, storage: boolean): JsonObject => ({
  name,
  served: true,
  storage,
  subresources: { status: {} },
  schema: {
    openAPIV3Schema: {
      type: 'object',
      properties: {
        spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      },
    },
  },
})

/** NodePool as far as the cluster's side needs it: any spec is taken. */
const nodePoolDefinition = (versions: readonly string[] = ['v1beta2']): JsonObject => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'nodepools.apps.openyurt.io' },
  spec: {
    group: 'apps.openyurt.io',
    names: {
      kind: 'NodePool',
      listKind: 'NodePoolList',
      plural: 'nodepools',
      singular: 'nodepool',
    },
    scope: 'Cluster',
    versions: versions.map((name) => version(name, name === versions.at(-1))),
  },
})

export interface TestCluster {
  readonly sandbox: Sandbox
  readonly api: ApiServer
  /** A kubeconfig file for the same API server. */
  readonly kubeconfig: string
  /** Another client of the same API server. */
  connect(onRequest?: (request: ApiRequest, status: number | undefined) => void): Promise<ApiServer>
}

/**
 * An API server in memory that knows NodePools, and a client of it as `nodehub cluster` has one.
 */
export async function startTestCluster(
  t: Teardown,
  options: SandboxOptions = {},
): Promise<TestCluster> {
  const sandbox = await startSandbox({ tls: false, ...options })
  t.teardown(() => sandbox[Symbol.asyncDispose]())
  sandbox.create(customResources, nodePoolDefinition())
  const kubeconfig = kubeconfigFor(t, sandbox.url)
  const other: TestCluster['connect'] = async (onRequest) => {
    const connected = await connect(
      {
        access: { kind: 'kubeconfig', file: kubeconfig },
        namespace: 'kube-system',
      },
      onRequest,
    )
    t.teardown(() => connected[Symbol.asyncDispose]())
    return connected.api
  }
  return { sandbox, api: await other(), kubeconfig, connect: other }
}

function kubeconfigFor(t: Teardown, server: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'nodehub-cluster-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'kubeconfig')
  // JSON is YAML too.
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server } }],
    users: [{ name: 'test', user: {} }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    'current-context': 'test',
  }
  writeFileSync(file, JSON.stringify(config))
  return file
}
