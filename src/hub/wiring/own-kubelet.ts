import { X509Certificate } from 'node:crypto'
import { cursorOf } from '../../api/codec/cursor.ts'
import { isList } from '../../api/kube/json.ts'
import { textAt } from '../../api/kube/json-at.ts'
import { nodes } from '../../api/kube/resources.ts'
import { kubeletCache, type KubeletCache } from '../boot/kubelet-cache.ts'
import { isRoot } from '../identity/caller.ts'
import type { SocketOwners } from '../identity/socket-owner.ts'
import type { ObjectStore } from '../store/store.ts'
import type { Cloud } from '../upstream/cloud.ts'
import { OwnKubelet } from '../upstream/own-kubelet.ts'
import type { Connections } from '../../http/client/connections.ts'
import { ownUseOf } from '../answers/at-kubelet.ts'
import type { OfflineWriteParts } from '../answers/offline-writes.ts'

interface Dependencies {
  readonly nodeName: string
  readonly cloud: Cloud
  readonly connections: Connections
  readonly store: ObjectStore
  readonly owners: SocketOwners
}

/**
 * The kubelet of this node, and the answers to its access reviews while no API server can give
 * them.
 */
interface Wired {
  readonly kubelet: OwnKubelet
  readonly ownUse: OfflineWriteParts['review']
}

/** Makes the parts by which the kubelet of this node answers in the cloud's place. */
export const ownKubeletOf = ({
  nodeName,
  cloud,
  connections,
  store,
  owners,
}: Dependencies): Wired => ({
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
