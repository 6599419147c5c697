import { canonical } from '../../base/listening-sockets.ts'
import type { StartConfig } from '../../config/hub-config.ts'
import { addressesOf, isAddressOf, type ListenerName } from '../../config/passed-sockets.ts'
import type { ListenTarget } from '../../http/server/listening.ts'

/**
 * The addresses of a listener: the sockets that were passed for it, and those of its configured
 * addresses that have no passed socket. If sockets were bound to other addresses than the
 * configured ones, only these are served. At the dummy interface the hub listens later
 * (`DummyInterface`), but for a passed socket.
 */
export function listenAddresses(
  config: StartConfig,
  listener: ListenerName,
): readonly ListenTarget[] {
  const { address, port, portFlag } = configured(config, listener)
  const besides = listener === 'ops' ? undefined : config.pods.dummy?.address
  const passed = config.sockets[listener] ?? []
  // The address of the other IP family is optional: a host may lack that family.
  const own = addressesOf(address).map((host, i) => ({ host, port, portFlag, ifPresent: i > 0 }))
  const elsewhere = passed.some(({ at }) => !isAddressOf({ address, port, besides }, at))
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
