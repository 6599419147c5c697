import type { ApiClient } from '../kit/cluster/api-client.ts'

/** Makes an account in the namespace default that may do everything; resolves to its token. */
export async function administratorToken(admin: ApiClient, name: string): Promise<string> {
  await posted(admin, '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', name, namespace: 'default' }],
  })
  return accountToken(admin, name)
}

async function accountToken(admin: ApiClient, name: string): Promise<string> {
  const accounts = '/api/v1/namespaces/default/serviceaccounts'
  await posted(admin, accounts, { metadata: { name } })
  const said = await posted(admin, `${accounts}/${name}/token`, { spec: {} })
  return (JSON.parse(said) as { status: { token: string } }).status.token
}

async function posted(admin: ApiClient, path: string, object: object): Promise<string> {
  const { status, body } = await admin.post(path, object)
  if (status !== 201) throw new Error(`POST ${path}: ${status} ${body.toString()}`)
  return body.toString()
}
