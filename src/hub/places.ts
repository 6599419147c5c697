import type { HubConfig } from '../config/hub-config.ts'
import type { ListenerName } from '../config/passed-sockets.ts'
import type { Place } from '../server/listening.ts'

/** Where a listener is to listen: on the socket that was passed for it, else at its own address. */
export function placeOf(config: HubConfig, listener: ListenerName): Place {
  const fd = config.sockets[listener]
  return fd === undefined ? addressOf(config, listener) : { fd }
}

function addressOf({ ops, proxy }: HubConfig, listener: ListenerName): Place {
  if (listener === 'ops') return { host: ops.address, port: ops.port }
  const port = listener === 'proxy' ? proxy.port : proxy.securePort
  return { host: proxy.address, port }
}
