import { canonical } from '../../base/listening-sockets.ts'
import type { StartConfig } from '../../config/hub-config.ts'
import { addressesOf, isAddressOf, type ListenerName } from '../../config/passed-sockets.ts'
import type { ListenTarget } from '../../http/server/listening.ts'

/**
 * Where a listener is to listen: on the sockets that were passed for it, and at those of its own
 * addresses that they leave out. Sockets that were bound elsewhere than is configured are served
 * alone.
 */
export function listenAddresses(
  config: StartConfig,
  listener: ListenerName,
): readonly ListenTarget[] {
  const { address, port, portFlag } = configured(config, listener)
  const passed = config.sockets[listener] ?? []
  // The address of the other family comes by itself: a host without that family is none the worse.
  const own = addressesOf(address).map((host, i) => ({ host, port, portFlag, ifPresent: i > 0 }))
  const elsewhere = passed.some(({ at }) => !isAddressOf({ address, port }, at))
  const held = new Set(passed.map(({ at }) => canonical(at.address)))
  const missing = elsewhere ? [] : own.filter(({ host }) => !held.has(host))
  return [...passed.map(({ fd }) => ({ fd })), ...missing]
}

function configured({ ops, proxy }: StartConfig, listener: ListenerName) {
  switch (listener) {
    case 'ops':
      return { ...ops, portFlag: '--serve-port' }
    case 'proxy':
      return { address: proxy.address, port: proxy.port, portFlag: '--proxy-port' }
    case 'proxy-secure':
      return { address: proxy.address, port: proxy.securePort, portFlag: '--proxy-secure-port' }
  }
}
