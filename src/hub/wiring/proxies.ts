import type { StartConfig } from '../../config/hub-config.ts'
import { addressesOf, type ListenerName } from '../../config/passed-sockets.ts'
import type { Handler, Incoming, WireReply } from '../../http/exchange/exchange.ts'
import { listen, listenSecurely, type Listener } from '../../http/server/listener.ts'
import type { BoundServer, BoundSocket, ListenTarget } from '../../http/server/listening.ts'
import type { HubContext } from './hub-context.ts'
import { logFailure } from './log-failure.ts'
import type { CloudParts } from './parts/cloud.ts'
import { canonical } from '../../base/listening-sockets.ts'

/**
 * More connections than any node needs (a kubelet has two for each Secret that it mounts), fewer
 * than file descriptors allow.
 */
export const maxConnections = 4_096

/**
 * The limit of those on which no caller is proven, which a caller is for milliseconds. It bounds
 * what they make the hub hold, and how much can arrive on them in one turn of the event loop.
 */
export const mostUnproven = 256

interface ProxyParts extends HubContext, Pick<CloudParts, 'serving' | 'servingReplaced'> {
  readonly handler: Handler<Incoming, WireReply>
}

/** A listening socket. */
export interface OpenSocket extends BoundSocket {
  readonly name: ListenerName
}

export const socketsOf = (name: ListenerName, { sockets }: BoundServer): readonly OpenSocket[] =>
  sockets.map((socket) => ({ ...socket, name }))

/**
 * The listeners for the node's programs. Rejects with `CannotListen`; nothing is left open then.
 * Disposing lets requests in flight finish within the grace period, then cuts them.
 */
export async function openProxies(of: ProxyParts) {
  const { config, live, handler, serving, servingReplaced, metrics, log } = of
  await using parts = new AsyncDisposableStack()
  const open: Listener[] = []
  // Both at the same time: while one waits for its requests, the other must accept no clients.
  parts.defer(async () => {
    await Promise.all(open.map((listener) => listener.close(live().shutdownGracePeriodMs)))
  })
  const proxied = {
    handler,
    maxConnections,
    mostUnproven,
    onBroken: (err: unknown) => {
      metrics.brokenAnswers.add()
      logFailure(log, 'info', { err }, 'an answer broke off')
    },
    onCut: (reason: string) => metrics.connectionsCut.add({ reason }),
  }
  const plain = await listen({ ...proxied, at: listenAddresses(config, 'proxy') })
  open.push(plain)
  const secure = await listenSecurely({
    ...proxied,
    at: listenAddresses(config, 'proxy-secure'),
    credentials: serving.current,
  })
  open.push(secure)
  parts.use(servingReplaced.listen((credentials) => secure.replaceCredentials(credentials)))
  const running = parts.move()
  return {
    plain,
    secure,
    get sockets(): readonly OpenSocket[] {
      return [...socketsOf('proxy', plain), ...socketsOf('proxy-secure', secure)]
    },
    /** Both listen at another address as well. Rejects with `CannotListen`. */
    listenAt: async (host: string): Promise<void> => {
      await plain.listenAt({ host, portFlag: '--proxy-port' })
      await secure.listenAt({ host, portFlag: '--proxy-secure-port' })
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

/**
 * The addresses of a listener: the sockets that were passed for it, and those of its configured
 * addresses that have no passed socket. At the dummy interface the hub listens later
 * (`DummyInterface`), but for a passed socket.
 */
export function listenAddresses(
  config: StartConfig,
  listener: ListenerName,
): readonly ListenTarget[] {
  const { address, port, portFlag } = configured(config, listener)
  const passed = config.sockets[listener] ?? []
  // The address of the other IP family is optional: a host may lack that family.
  const own = addressesOf(address).map((host, i) => ({ host, port, portFlag, ifPresent: i > 0 }))
  const held = new Set(passed.map(({ at }) => canonical(at.address)))
  const missing = own.filter(({ host }) => !held.has(host))
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
