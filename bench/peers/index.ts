import { direct } from './direct.ts'
import { haproxy } from './haproxy.ts'
import { httpProxyPeer } from './http-proxy.ts'
import { hub } from './hub.ts'
import type { Peer } from './peer.ts'

/** In the order in which they are shown. */
export const peers: readonly Peer[] = [direct, haproxy, httpProxyPeer, hub]
