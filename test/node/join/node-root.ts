import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'

const pair = '/var/lib/kubelet/pki/kubelet-client-current.pem'

const credential = (name: string): string =>
  readFileSync(`test/fixtures/credentials/${name}`, 'utf8')

/**
 * The node edge-1 as kubeadm leaves it, with its kubelet's flags in a file that is a link, in a
 * folder of a test.
 */
export function nodeRoot(
  root: string,
  {
    server = 'https://127.0.0.1:1',
    files = {},
  }: { server?: string; files?: Record<string, string> } = {},
): string {
  const all: Record<string, string> = {
    '/etc/kubernetes/kubelet.conf': JSON.stringify({
      clusters: [{ name: 'c', cluster: { server } }],
      users: [{ name: 'u', user: { 'client-certificate': pair, 'client-key': pair } }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    }),
    [pair]: credential('client.crt') + credential('client.key'),
    '/etc/kubernetes/manifests/other.yaml': 'kind: Pod\n',
    '/srv/kubelet/flags.env': 'KUBELET_KUBEADM_ARGS="--network-plugin=cni --v=2"\n',
    ...files,
  }
  for (const [path, content] of Object.entries(all)) {
    mkdirSync(dirname(join(root, path)), { recursive: true, mode: 0o755 })
    writeFileSync(join(root, path), content, { mode: 0o644 })
  }
  chmodSync(join(root, '/srv/kubelet/flags.env'), 0o640)
  symlinkSync('/srv/kubelet/flags.env', join(root, '/var/lib/kubelet/kubeadm-flags.env'))
  return root
}

/**
 * Every file, link and folder below, with its rights and content; without those whose paths begin
 * with one of `but`, and /run, which ends with the boot.
 */
export function treeOf(root: string, ...but: readonly string[]): Record<string, string> {
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).toSorted()
  return Object.fromEntries(
    names
      .filter((name) => !/^run(?:\/|$)/.test(name))
      .filter((name) => !but.some((each) => `/${name}`.startsWith(each)))
      .map((name) => {
        const path = join(root, name)
        const stat = lstatSync(path)
        const rights = (stat.mode & 0o7777).toString(8)
        if (stat.isSymbolicLink()) return [name, `-> ${readlinkSync(path)}`]
        return [name, stat.isFile() ? `${rights} ${readFileSync(path, 'utf8')}` : `${rights}/`]
      }),
  )
}
