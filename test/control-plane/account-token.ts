import type { ApiClient } from '../kit/cluster/api-client.ts'

/** Makes a service account in `namespace`; resolves to a token of it. */
export async function accountToken(
  admin: ApiClient,
  name: string,
  namespace = 'default',
): Promise<string> {
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`
  await posted(admin, accounts, { metadata: { name } })
  const said = await posted(admin, `${accounts}/${name}/token`, { spec: {} })
  return (JSON.parse(said) as { status: { token: string } }).status.token
}

/** The same of an account in the namespace default that may do everything. */
export async function administratorToken(admin: ApiClient, name: string): Promise<string> {
  await posted(admin, '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', name, namespace: 'default' }],
  })
  return accountToken(admin, name)
}

async function posted(admin: ApiClient, path: string, object: object): Promise<string> {
  const { status, body } = await admin.post(path, object)
  if (status !== 201) throw new Error(`POST ${path}: ${status} ${body.toString()}`)
  return body.toString()
}
