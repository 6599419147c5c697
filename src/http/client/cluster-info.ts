import type { BootstrapConfig, BootstrapToken } from '../../config/bootstrap.ts'
import { certificatesIn, hashOfPublicKey, pinnedCertificates } from '../../config/bootstrap.ts'
import { clusterCaIn } from '../../config/kubeconfig.ts'
import { isSignedWith } from '../../certificates/detached-signature.ts'
import { textAt, valueAt } from '../../api/kube/json-at.ts'
import { anyApiCall, ApiRefusal, type ApiCall } from './api-call.ts'

const path = '/api/v1/namespaces/kube-public/configmaps/cluster-info'

/** The cluster's CA cannot be found, or the proof that it is the CA does not hold. */
class UnknownCa extends Error {
  readonly code = 'UNKNOWN_CA'
}

/**
 * The CA of the cluster, PEM, found by a bootstrap token as kubeadm does it
 * (cmd/kubeadm/app/discovery/token): read from the ConfigMap cluster-info over an unverified
 * connection, with a signature that only a holder of the token can make, and read again over a
 * connection that the CA verifies. That connection accepts only certificates with a pinned public
 * key: a thief of the token could sign a bundle with another CA beside the cluster's. Given pins
 * count with `anyCa`, too. Rejects where anything does not match.
 */
export async function findCa(
  servers: readonly URL[],
  token: BootstrapToken,
  { caHashes, anyCa }: Pick<BootstrapConfig, 'caHashes' | 'anyCa'>,
  signal?: AbortSignal,
): Promise<string> {
  const stopped = signal && { signal }
  const first = await clusterInfo(
    anyApiCall(servers, { files: [] }, { ...stopped, unverified: true }),
    token,
  )
  const ca = caIn(first)
  const isPinned = caHashes.length > 0 || !anyCa
  const believed = isPinned ? pinnedCertificates(ca, caHashes) : certificatesIn(ca)
  if (believed.length === 0) {
    const has = certificatesIn(ca).map(hashOfPublicKey).join(', ')
    throw new UnknownCa(
      `the CA in ${shortPath} has the public key ${has}, which --discovery-token-ca-cert-hash does not name: it is another cluster's, or an attacker is between the node and its API servers`,
    )
  }
  const verified = anyApiCall(servers, { ca: believed.join(''), files: [] }, stopped)
  const second = await clusterInfo(verified, token)
  if (second !== first) {
    throw new UnknownCa(
      `${shortPath} is another one when it is read over a verified connection: an attacker is between the node and its API servers, or it has changed just now`,
    )
  }
  return ca
}

const shortPath = 'the ConfigMap kube-public/cluster-info'

/**
 * The CA in the ConfigMap, PEM, as the server of `call` shows it: no more trustworthy than that
 * server.
 */
export async function publishedCa(call: ApiCall): Promise<string> {
  return caIn((await read(call)).kubeconfig)
}

/** The kubeconfig in the ConfigMap, whose signature with the token is verified. */
async function clusterInfo(call: ApiCall, { id, secret }: BootstrapToken): Promise<string> {
  const { data, kubeconfig } = await read(call)
  const signature = textAt(data, `jws-kubeconfig-${id}`)
  if (signature === '') {
    throw new UnknownCa(
      `${shortPath} is not signed with the bootstrap token ${id}: it has expired, is not for signing, or is another cluster's`,
    )
  }
  if (!(await isSignedWith({ id, secret: secret.reveal() }, kubeconfig, signature))) {
    throw new UnknownCa(
      `the signature of ${shortPath} is not that of the bootstrap token ${id}: its secret is another one, or an attacker is between the node and its API servers`,
    )
  }
  return kubeconfig
}

async function read(call: ApiCall) {
  const request = { method: 'GET', path }
  const answer = await call(request)
  if (answer.status !== 200) throw new ApiRefusal('the API server', request, answer)
  const data = valueAt(answer.body, 'data')
  const kubeconfig = textAt(data, 'kubeconfig')
  if (kubeconfig === '') throw new UnknownCa(`${shortPath} has no kubeconfig`)
  return { data, kubeconfig }
}

function caIn(kubeconfig: string): string {
  const ca = clusterCaIn(kubeconfig)
  if (ca === undefined || certificatesIn(ca).length === 0)
    throw new UnknownCa(`the kubeconfig in ${shortPath} has no CA that can be read`)
  return ca
}
