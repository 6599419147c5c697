import { direct } from './direct.ts'
import { haproxyHttp, haproxyTcp } from './haproxy.ts'
import { httpProxyPeer } from './http-proxy.ts'
import { hub } from './hub.ts'
import { nginx } from './nginx.ts'
import type { Peer } from './peer.ts'
import { yurthub } from './yurthub.ts'

export interface Programs {
  /** Entries of the hub, and of the one it is compared with. */
  readonly hub: string
  readonly against: string | undefined
  readonly yurthub: string | undefined
}

/** In the order in which they are shown. */
export const peersOf = (programs: Programs): readonly Peer[] => [
  direct,
  haproxyHttp,
  haproxyTcp,
  nginx,
  httpProxyPeer,
  yurthub(programs.yurthub),
  ...(programs.against === undefined ? [] : [hub(programs.against, 'against')]),
  hub(programs.hub),
]
