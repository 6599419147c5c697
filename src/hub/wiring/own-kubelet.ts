import { X509Certificate } from 'node:crypto'
import { cursorOf } from '../../api/codec/cursor.ts'
import { isList } from '../../api/kube/json.ts'
import { textAt } from '../../api/kube/json-at.ts'
import { nodes } from '../../api/kube/resources.ts'
import { kubeletCache, type KubeletCache } from '../boot/kubelet-cache.ts'
import { isRoot } from '../identity/caller.ts'
import type { ObjectStore } from '../store/store.ts'
import { OwnKubelet } from '../upstream/own-kubelet.ts'
import { ownUseOf } from '../answers/at-kubelet.ts'
import type { OfflineWriteParts } from '../answers/offline-writes.ts'
import type { CloudParts } from './parts/cloud.ts'
import type { IdentityParts } from './parts/identity.ts'

interface Dependencies
  extends Pick<CloudParts, 'cloud' | 'connections'>, Pick<IdentityParts, 'owners'> {
  readonly nodeName: string
  readonly store: ObjectStore
}

/**
 * The kubelet of this node, which answers in the cloud's place, and the answers to its access
 * reviews while no API server can give them.
 */
export const ownKubeletOf = ({
  nodeName,
  cloud,
  connections,
  store,
  owners,
}: Dependencies): { kubelet: OwnKubelet; ownUse: OfflineWriteParts['review'] } => ({
  kubelet: new OwnKubelet({
    credentials: () => connections.credentials,
    addresses: () => kubeletAddresses(kubeletCache(store, nodeName), nodeName),
    isRoots: async (peer) => isRoot(peer, owners),
  }),
  ownUse: (exchange, info, review) => {
    const { certificate } = connections.credentials
    if (cloud.online !== false || !certificate) return undefined
    const { CN: name } = new X509Certificate(certificate.chain).toLegacyObject().subject
    return typeof name === 'string' ? ownUseOf(nodeName, name, exchange, info, review) : undefined
  },
})

/** The port of a kubelet whose Node names no other. */
const defaultPort = 10_250

/**
 * Where the kubelet listens according to its Node: at all addresses by default, of which loopback
 * needs no link, or at one of the node's.
 */
function kubeletAddresses(
  cache: KubeletCache,
  nodeName: string,
): { readonly host: string; readonly port: number }[] {
  const found = cache.object(nodes, '', nodeName)
  const node =
    typeof found === 'object' ? cursorOf(found.encoding, found.gvk, found.object) : undefined
  const given = node?.value(['status', 'daemonEndpoints', 'kubeletEndpoint', 'Port'])
  const port = typeof given === 'number' && given > 0 ? given : defaultPort
  const listed = node?.json(['status', 'addresses'])
  const own = (isList(listed) ? listed : [])
    .filter((each) => textAt(each, 'type') === 'InternalIP')
    .map((each) => textAt(each, 'address'))
  return ['127.0.0.1', ...own].map((host) => ({ host, port }))
}
