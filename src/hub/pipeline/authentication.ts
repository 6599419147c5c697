import { forbidden, StatusError } from '../../api/kube/status.ts'
import { componentOf, type Component } from '../../api/request/component.ts'
import { rebindingFault } from '../../api/request/host-check.ts'
import { nodeIdentity } from '../../api/request/identity.ts'
import { representationsOf } from '../../api/request/representation.ts'
import {
  parseRequestInfo,
  namedBySelector,
  type RequestInfo,
} from '../../api/request/request-info.ts'
import {
  isProven,
  type Exchange,
  type Handler,
  type Incoming,
  type Peer,
  type WireReply,
} from '../../http/exchange/exchange.ts'
import { authenticate, type AuthenticationRules, type Caller } from '../identity/caller.ts'
import { knownPrograms } from '../../api/kube/programs.ts'

/**
 * Refuses requests with a foreign Host or Origin before any of them is trusted, parses the URL,
 * authenticates the caller, and determines its component and the representations that it accepts:
 * the request becomes an exchange. Reports the proven caller to the listener before any of the
 * answer exists.
 */
export function withAuthentication(rules: AuthenticationRules, ownHosts: ReadonlySet<string>) {
  const kubelets = new KubeletNames(rules.nodeName)
  const hosts = new HostCheck(ownHosts)
  return (next: Handler<Exchange, WireReply>): Handler<Incoming, WireReply> => {
    const reporting = withProvenCaller(next)
    const proceed = (incoming: Incoming, info: RequestInfo, caller: Caller): Promise<WireReply> => {
      const { headers } = incoming
      const { identity, credential, claim, knownUntil } = caller
      const name = componentOf(headers.get('user-agent'))
      return reporting({
        ...incoming,
        info,
        component: credential === 'node' ? kubelets.componentOf(name, info) : name,
        representations: representationsOf(headers.get('accept'), info.query),
        identity,
        credential,
        ...(claim && { claim }),
        ...(knownUntil && { knownUntil }),
      })
    }
    return (incoming) => {
      hosts.check(incoming)
      const info = parseRequestInfo(incoming.method, incoming.url)
      const caller = authenticate(incoming, rules)
      return caller instanceof Promise
        ? caller.then((known) => proceed(incoming, info, known))
        : proceed(incoming, info, caller)
    }
  }
}

/**
 * Refuses requests on loopback with a foreign Host or Origin: a web page or a rebound DNS name
 * directed a browser here.
 */
export class HostCheck {
  readonly #ownHosts: ReadonlySet<string>
  /** The last Host of each connection that was not refused: programs repeat it. */
  readonly #familiar = new WeakMap<Peer, string>()

  constructor(ownHosts: ReadonlySet<string>) {
    this.#ownHosts = ownHosts
  }

  /** Throws a 403. */
  check({ headers, peer }: Incoming): void {
    const [host, origin] = [headers.get('host'), headers.get('origin')]
    const isPlain = host !== undefined && origin === undefined
    if (isPlain && this.#familiar.get(peer) === host) return
    const { localAddress } = peer
    const strange = rebindingFault(this.#ownHosts, { localAddress, host, origin })
    if (strange !== undefined) throw new StatusError(forbidden(strange))
    if (isPlain) this.#familiar.set(peer, host)
  }
}

/**
 * Reports the proven caller to the listener: before the request is passed on or, where an API
 * server's answer proves the token, before that answer is sent; or where it has upgraded the
 * connection.
 */
export function withProvenCaller(next: Handler<Exchange, WireReply>): Handler<Exchange, WireReply> {
  return (exchange) => {
    if (report(exchange)) return next(exchange)
    return next(exchange).then((reply) => {
      const outcome = reply.kind === 'upgrade' ? reply.finalStatus : undefined
      if (outcome) void outcome.then(() => report(exchange))
      else report(exchange)
      return reply
    })
  }
}

function report(exchange: Exchange): boolean {
  if (!isProven(exchange)) return false
  exchange.onProven?.(exchange.identity === nodeIdentity)
  return true
}

/** More names than a kubelet has. */
const mostNames = 16

/** The component of all requests of this node's kubelet. */
const kubelet = 'kubelet' as Component

/**
 * This node's kubelet by what it does: a program with the node's credentials that lists or watches
 * this Node, or its pods, is the kubelet from then on, whatever it is called (`kubelite` in
 * microk8s, `k3s`). Other programs that are known by their names keep them.
 */
class KubeletNames {
  readonly #nodeName: string
  readonly #names = new Set<string>()

  constructor(nodeName: string) {
    this.#nodeName = nodeName
  }

  /** The component of a request with the node's credentials, from a program of this name. */
  componentOf(name: Component, info: RequestInfo): Component {
    if (this.#names.has(name)) return kubelet
    if (knownPrograms.has(name) || !this.#isKubelets(info)) return name
    // Clients choose their names.
    if (this.#names.size < mostNames) this.#names.add(name)
    return kubelet
  }

  /** As a kubelet makes its sources (k/k pkg/kubelet/config/apiserver.go and kubelet.go). */
  #isKubelets(info: RequestInfo): boolean {
    if (!info.isResource || info.gvr.group !== '' || info.namespace !== undefined) return false
    if (info.verb !== 'list' && info.verb !== 'watch') return false
    const selected = info.query.get('fieldSelector')
    return info.gvr.resource === 'nodes'
      ? namedBySelector(info) === this.#nodeName
      : info.gvr.resource === 'pods' && selected === `spec.nodeName=${this.#nodeName}`
  }
}
