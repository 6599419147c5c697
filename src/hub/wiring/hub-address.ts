import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { connect } from 'node:tls'
import type { Logger } from 'pino'
import { after } from '../../base/clock.ts'
import { joinHostPort } from '../../base/listening-sockets.ts'
import type { StartConfig } from '../../config/hub-config.ts'
import { connected } from '../../http/client/tcp.ts'
import type { HubAddress } from '../filter/inputs.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import { isLoopback } from '../../api/request/host-check.ts'

interface HubAddressParts {
  readonly pods: StartConfig['pods']
  /** PEM: the current certificate of the TLS proxy, followed by its chain. */
  readonly certificate: () => string
  /** PEM: the cluster's certificate authorities, as in `kube-root-ca.crt`; `undefined`: unknown. */
  readonly ca: () => string | undefined
  /**
   * The ClusterIPs of default/kubernetes; `null`: they cannot be read; `undefined`: not known yet.
   */
  readonly serviceAddresses: () => readonly string[] | null | undefined
  /** Called with a changed address; `null`: pods must not be directed to the hub. */
  readonly publish: (address: HubAddress | null) => void
  readonly metrics: HubMetrics
  readonly log: Logger
}

/** The interval of probes while pods are directed there, and while they are not. */
const againMs = 60_000
const brokenAgainMs = 10_000

/**
 * How long a connection to this node may take: a busy one may not answer for a moment, and a pod
 * that starts then would keep another address.
 */
const connectMs = 10_000

/**
 * Whether pods can be directed to the hub: at --hub-address, or else at the dummy interface, this
 * hub answers with a certificate that pods trust. Pods have the cluster's certificate authorities
 * and no others, so that the certificate has to chain to those and to name that address; and on
 * loopback pods reach themselves, unless they share the node's network. Pods that dial the
 * ClusterIP of default/kubernetes can be led there only where it names that, too. It is probed
 * again when a certificate or these addresses change, and periodically.
 */
export class ReachableAddress implements Disposable {
  readonly #parts: HubAddressParts
  readonly #first = Promise.withResolvers<void>()
  /** Resolves after the first probe; `undefined`: it is over. */
  firstProbe: Promise<void> | undefined = this.#first.promise
  /** `undefined` until the TLS proxy listens. */
  #securePort: number | undefined
  /** The result of making the dummy interface; `why` is the reason that prevents its use. */
  #dummy: { readonly why: string | undefined } | undefined
  /** `undefined` before the first. */
  #found: Found | undefined
  #probing = Promise.resolve()
  #timer: Disposable | undefined
  #closed = false

  constructor(parts: HubAddressParts) {
    this.#parts = parts
    const why = this.#refusal()
    // A refusal that needs no probe is published at once.
    if (why !== undefined) this.#settle(why)
  }

  /** To be called when the TLS proxy listens, with its port. */
  listening(securePort: number): void {
    this.#securePort = securePort
    void this.probe()
  }

  /** To be called when the hub listens at the dummy interface, or with the reason why not. */
  dummySettled(why: string | undefined): void {
    this.#dummy = { why }
    void this.probe()
  }

  /**
   * Probes, after a running probe, and resolves when that is done. It does nothing before the TLS
   * proxy listens, at the dummy interface if pods use that.
   */
  probe(): Promise<void> {
    return (this.#probing = this.#probing.then(() => this.#probe()))
  }

  async #probe(): Promise<void> {
    const { hubAddress, dummy } = this.#parts.pods
    const awaitsDummy = !hubAddress && dummy !== undefined && this.#dummy === undefined
    if (this.#closed || this.#securePort === undefined || awaitsDummy) return
    const why = await this.#fault().catch(
      (cause: unknown) => `it cannot be looked at: ${String(cause)}`,
    )
    if (this.#closed) return
    this.#settle(why)
    this.#timer?.[Symbol.dispose]()
    this.#timer = after(why === undefined ? againMs : brokenAgainMs, () => void this.probe())
  }

  /** For `/readyz?verbose`: it does not affect readiness. Nothing where no address is wanted. */
  verboseLines(): string[] {
    if (!this.isWanted) return []
    const { address, why, whyNotForService } = this.#found ?? { why: 'not probed yet' }
    if (!address) return [`[ ]hub-address pods are not led to the hub: ${why}`]
    return [
      `[+]hub-address pods are led to ${shownAs(address)}`,
      ...(whyNotForService === undefined
        ? []
        : [`[ ]hub-address forwardkubesvctraffic does nothing: ${whyNotForService}`]),
    ]
  }

  /** Why pods that dial a ClusterIP of default/kubernetes are not led to the hub. */
  #lookForService(): string | undefined {
    const addresses = this.#parts.serviceAddresses()
    if (!addresses)
      return `the ClusterIPs of default/kubernetes ${addresses === null ? 'cannot be read' : 'are not known yet'}`
    const own = new X509Certificate(this.#parts.certificate())
    const missing = addresses.filter((each) => own.checkIP(each) === undefined)
    return missing.length === 0
      ? undefined
      : `the certificate of the hub does not name ${missing.join(' and ')}, by which pods dial default/kubernetes`
  }

  /** Why the hub is not reached; `undefined`: it is. */
  async #fault(): Promise<string | undefined> {
    const why = this.#refusal()
    const configured = this.#configured()
    if (why !== undefined || !configured) return why ?? ''
    const { hostNetworkNode } = this.#parts.pods
    const seen = await reach(configured, this.#parts.ca() ?? '')
    if (typeof seen === 'string') return seen
    if (isLoopback(seen.remoteAddress) && !hostNetworkNode) return onLoopback(configured)
    const own = new X509Certificate(this.#parts.certificate())
    if (seen.certificate.equals(own.raw)) return undefined
    return `another server answers at ${shownAs(configured)}`
  }

  /** Why no probe is needed; `undefined`: one is. */
  #refusal(): string | undefined {
    const configured = this.#configured()
    const { hostNetworkNode } = this.#parts.pods
    if (!this.isWanted) return 'there is no --hub-address, and no dummy interface'
    if (this.#parts.ca() === undefined)
      return 'the credentials of the hub name no authority of the cluster'
    if (!configured) return this.#dummy?.why
    return isLoopback(configured.host) && !hostNetworkNode ? onLoopback(configured) : undefined
  }

  /** Whether the configuration has pods led to the hub. */
  get isWanted(): boolean {
    const { hubAddress, dummy } = this.#parts.pods
    return hubAddress !== undefined || dummy !== undefined
  }

  /** A port of 0 means the port of the TLS proxy. */
  #configured(): Address | undefined {
    const { hubAddress, dummy } = this.#parts.pods
    const isDummyUsable = this.#dummy !== undefined && this.#dummy.why === undefined
    const used =
      hubAddress ?? (dummy && isDummyUsable ? { host: dummy.address, port: 0 } : undefined)
    return used && { host: used.host, port: used.port || (this.#securePort ?? 0) }
  }

  #settle(why: string | undefined): void {
    const reached = why === undefined ? this.#configured() : undefined
    const whyNotForService = reached && this.#lookForService()
    const address = reached ? { ...reached, forService: whyNotForService === undefined } : null
    if (!this.#found || why !== this.#found.why) this.#logChange(address, why)
    this.#found = { address, why, whyNotForService }
    this.#parts.metrics.hubAddressReachable.set(address ? 1 : 0)
    this.#parts.publish(address)
    this.firstProbe = undefined
    this.#first.resolve()
  }

  #logChange(address: HubAddress | null, why: string | undefined): void {
    const { log } = this.#parts
    if (address) log.info({ address }, 'pods are led to the hub')
    else
      log[this.isWanted ? 'warn' : 'info'](
        { why },
        'pods are not led to the hub: masterservice, serviceenvupdater and forwardkubesvctraffic do nothing',
      )
  }

  [Symbol.dispose](): void {
    this.#closed = true
    this.#timer?.[Symbol.dispose]()
    this.#first.resolve()
  }
}

/** What the last probe has found. */
interface Found {
  readonly address?: HubAddress | null
  /** Why pods are not directed to the hub. */
  readonly why: string | undefined
  /** Why pods that dial a ClusterIP of default/kubernetes are not led to the address. */
  readonly whyNotForService?: string | undefined
}

type Address = Pick<HubAddress, 'host' | 'port'>

const shownAs = ({ host, port }: Address): string => joinHostPort({ address: host, port })

const onLoopback = (address: Address): string =>
  `${shownAs(address)} is on loopback, where pods reach themselves`

/** The server at the address, its certificate in DER; or why it is not reached. */
type Reached = { readonly remoteAddress: string; readonly certificate: Buffer } | string

/** Connects as a pod does: with the cluster's authorities, and the address as the server name. */
async function reach(address: Address, ca: string): Promise<Reached> {
  const { host, port } = address
  const name = isIP(host) === 0 && { servername: host }
  const socket = connect({ host, port, ca, allowPartialTrustChain: true, ...name })
  try {
    await connected(socket, 'secureConnect', shownAs(address), connectMs)
    const { raw } = socket.getPeerCertificate()
    return { remoteAddress: socket.remoteAddress ?? '', certificate: raw }
  } catch (cause) {
    return whyNot(address, cause as NodeJS.ErrnoException)
  } finally {
    socket.destroy()
  }
}

/**
 * The result of a failed connection: by OpenSSL's codes for certificates, Node's for their names,
 * and otherwise those of the network.
 */
function whyNot(address: Address, { code = '', message }: NodeJS.ErrnoException): string {
  const where = shownAs(address)
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `the certificate at ${where} does not name ${address.host}`
  }
  if (/^(UNABLE_TO_|CERT_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_|HOSTNAME_)/.test(code)) {
    return `the certificate at ${where} is not one that pods trust (${code})`
  }
  return `no answer at ${where}: ${message}`
}
