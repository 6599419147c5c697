import type { Upstream } from './upstream.ts'

/** A kubeconfig of these credentials. JSON is YAML too. */
export const kubeconfigOf = ({ url, ca, certificate, key }: Upstream['node']): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'bench', cluster: { server: url, 'certificate-authority': ca } }],
    users: [{ name: 'bench', user: { 'client-certificate': certificate, 'client-key': key } }],
    contexts: [{ name: 'bench', context: { cluster: 'bench', user: 'bench' } }],
    'current-context': 'bench',
  })
