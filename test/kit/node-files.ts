import { readFileSync } from 'node:fs'
import type { ReadFile } from '../../src/config/credentials.ts'

const credentials = (name: string): string =>
  readFileSync(`test/fixtures/credentials/${name}`, 'utf8')

/**
 * What a node has that joined with kubeadm, as far as the hub reads it; any other file is not
 * there.
 */
const files = new Map([
  [
    '/var/lib/kubelet/pki/kubelet-client-current.pem',
    credentials('client.crt') + credentials('client.key'),
  ],
  ['/etc/kubernetes/pki/ca.crt', credentials('ca.crt')],
  // Of a control plane's own nodes.
  ['/etc/kubernetes/admin.conf', 'apiVersion: v1\nkind: Config\n'],
])

/** Reads files of a kubeadm node. */
export const readNodeFile: ReadFile = (path) => {
  const content = files.get(path)
  if (content === undefined) throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' })
  return content
}
