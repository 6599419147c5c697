import { dirname } from 'node:path'
import { stringify } from 'yaml'
import { keepProcessAlive } from '../../base/clock.ts'
import { makeFolder } from '../../base/folder.ts'
import { Secret } from '../../base/secret.ts'
import { pemOfKey } from '../../certificates/keys.ts'
import { StoredPair } from '../../certificates/stored-pair.ts'
import { textAt } from '../../api/kube/json-at.ts'
import type { BootstrapConfig, BootstrapToken } from '../../config/bootstrap.ts'
import { anyApiCall } from '../../http/client/api-call.ts'
import { findCa } from '../../http/client/cluster-info.ts'
import { nodeClient, signedCertificate } from '../../http/client/signed-certificate.ts'
import { kubeletKubeconfig } from './kubelet-kubeconfig.ts'
import { ownRights, type NodeFiles } from './node-files.ts'

export interface KubeletBootstrap extends Pick<BootstrapConfig, 'caHashes' | 'anyCa'> {
  readonly nodeName: string
  readonly servers: readonly URL[]
  readonly token: BootstrapToken
  /** Where kubeadm and the kubelet have these files. */
  readonly paths: {
    readonly kubeconfig: string
    readonly ca: string
    /** The kubelet's certificate with its key: `…/kubelet-client-current.pem`. */
    readonly pair: string
    readonly config: string
  }
}

/** Long enough for a person to approve the request. */
const approvalMs = 300_000

/**
 * Gives a bare node the files that `kubeadm join` gives a kubelet: the cluster's CA, a certificate
 * for the node, a kubeconfig with both, and the cluster's configuration of kubelets, where there is
 * none. The kubeconfig is written last: a join that was broken off begins anew. Rejects where the
 * cluster cannot be trusted or gives no certificate; nothing is written then, but for the key of a
 * request that still waits for approval. Returns notes for the operator.
 */
export async function bootstrapKubelet(
  files: NodeFiles,
  { nodeName, servers, token, caHashes, anyCa, paths }: KubeletBootstrap,
): Promise<readonly string[]> {
  using _waiting = keepProcessAlive()
  const ca = await findCa(servers, token, { caHashes, anyCa })
  const folder = dirname(paths.pair)
  makeFolder(folder, 0o755)
  const stored = new StoredPair(folder, 'kubelet-client')
  const key = await stored.nextKey()
  const text = new Secret(`${token.id}.${token.secret.reveal()}`)
  const certificate = await signedCertificate(
    anyApiCall(servers, { ca, token: text, files: [] }),
    key,
    nodeClient(nodeName),
    { patienceMs: approvalMs, signal: new AbortController().signal },
  ).catch(async (cause: unknown) => {
    if ((cause as { code?: unknown }).code !== 'REQUEST_PENDING') await stored.forgetKey()
    throw cause
  })
  const write = (path: string, mode: number, content: string): void =>
    files.write(path, { content: Buffer.from(content), ...ownRights(mode) })
  write(paths.ca, 0o644, ca)
  const pair = { certificate, key: pemOfKey(key) }
  await stored.replace(pair)
  const notes: string[] = []
  if (files.read(paths.config) === undefined) {
    const shown = { chain: pair.certificate, key: new Secret(pair.key) }
    const call = anyApiCall(servers, { ca, certificate: shown, files: [] })
    const { body } = await call({ method: 'GET', path: clusterKubeletConfig })
    const config = textAt(body, 'data', 'kubelet')
    if (config !== '') write(paths.config, 0o644, config)
    else {
      notes.push(
        `${paths.config} is not there, and the cluster has no ConfigMap kubelet-config for it: the kubelet needs a configuration`,
      )
    }
  }
  const kubeconfig = kubeletKubeconfig({
    server: servers[0]?.origin ?? '',
    certificateAuthority: paths.ca,
    clientCertificate: paths.pair,
    clientKey: paths.pair,
  })
  write(paths.kubeconfig, 0o600, stringify(kubeconfig, { lineWidth: 0 }))
  return notes
}

const clusterKubeletConfig = '/api/v1/namespaces/kube-system/configmaps/kubelet-config'
