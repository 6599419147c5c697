import { createServer, type Server, type TlsOptions } from 'node:tls'
import { createServer as createPlainServer, type AddressInfo, type Socket } from 'node:net'
import { once } from 'node:events'
import pino from 'pino'
import t from 'tap'
import {
  CertificateAuthority,
  type CertificateRequest,
} from '../../../src/certificates/authority.ts'
import type { HubAddress } from '../../../src/hub/filter/inputs.ts'
import { ReachableAddress } from '../../../src/hub/wiring/hub-address.ts'
import { createMetrics } from '../../../src/metrics/metrics.ts'
import { intermediateAuthority } from '../../kit/certificates.ts'
import type { Teardown } from '../../kit/wire/wire.ts'
import { portOf } from '../../kit/wire/listening.ts'

const cluster = await CertificateAuthority.create('cluster-ca')
const others = await CertificateAuthority.create('another cluster')

const issued = (names: Partial<CertificateRequest>, authority = cluster) =>
  authority.issue({ commonName: 'hub', usage: 'server', ...names })

const right = await issued({ ipAddresses: ['127.0.0.1'], dnsNames: ['localhost'] })

/** A listener on loopback, and what is reported of it. */
class Listening {
  readonly told: (HubAddress | null)[] = []
  readonly lines: string[] = []
  readonly address: ReachableAddress
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  shown = right
  ca: string | undefined = cluster.certificate
  pods = {
    dummy: undefined as { name: string; address: string } | undefined,
    hubAddress: { host: '127.0.0.1', port: 0 } as { host: string; port: number } | undefined,
    hostNetworkNode: true,
  }
  serviceAddresses: readonly string[] | null | undefined = []
  #port = 0

  constructor(t: Teardown, changes: (listening: Listening) => void = () => undefined) {
    changes(this)
    this.#server = createServer(this.#tls())
    this.#server.on('connection', (socket: Socket) => this.#sockets.add(socket))
    t.teardown(() => this.close())
    this.address = new ReachableAddress({
      pods: this.pods,
      certificate: () => this.shown.certificate,
      ca: () => this.ca,
      serviceAddresses: () => this.serviceAddresses,
      publish: (address) => this.told.push(address),
      metrics: createMetrics(),
      log: pino({ level: 'info' }, { write: (line: string) => void this.lines.push(line) }),
    })
    t.teardown(() => this.address[Symbol.dispose]())
  }

  async listening(): Promise<void> {
    this.#server.listen(this.#port, '127.0.0.1')
    await once(this.#server, 'listening')
    this.#port = (this.#server.address() as AddressInfo).port
    this.address.listening(this.#port)
  }

  async open(): Promise<this> {
    await this.listening()
    await this.address.firstProbe
    return this
  }

  /** Shows another certificate from now on. */
  show(pair: typeof right, own = true): Promise<void> {
    if (own) this.shown = pair
    this.#server.setSecureContext({ cert: pair.certificate, key: pair.key })
    return this.address.probe()
  }

  get here(): HubAddress {
    return { host: '127.0.0.1', port: this.#port, forService: true }
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #tls(): TlsOptions {
    return { cert: this.shown.certificate, key: this.shown.key }
  }
}

void t.test('an address at which the hub answers with a certificate of the cluster', async (t) => {
  const hub = await new Listening(t).open()
  t.strictSame(hub.told, [hub.here])
  t.match(hub.address.verboseLines().join(), /^\[\+\]hub-address pods are led to 127\.0\.0\.1:\d+$/)
  t.match(hub.lines, [/pods are led to the hub/])
})

void t.test('pods trust an intermediate that is their whole CA file', async (t) => {
  const intermediate = await intermediateAuthority()
  const hub = await new Listening(t, (hub) => (hub.ca = intermediate.certificate)).open()
  t.match(hub.address.verboseLines().join(), 'is not one that pods trust')
  await hub.show(await issued({ ipAddresses: ['127.0.0.1'] }, intermediate))
  t.strictSame(hub.told.at(-1), hub.here)
})

void t.test('a name that the certificate has', async (t) => {
  const hub = await new Listening(t, (hub) => {
    hub.pods.hubAddress = { host: 'localhost', port: 0 }
  }).open()
  t.strictSame(hub.told, [{ ...hub.here, host: 'localhost' }])
})

void t.test('the dummy interface is evaluated once it is there, or has failed', async (t) => {
  const dummy = { name: 'hub-dummy0', address: '127.0.0.1' }
  const changes = (hub: Listening): void => {
    hub.pods.hubAddress = undefined
    hub.pods.dummy = dummy
  }
  const hub = new Listening(t, changes)
  await hub.listening()
  t.strictSame(hub.told, [], 'nothing is reported before')
  t.ok(hub.address.firstProbe, 'and who needs it waits')
  hub.address.dummySettled(undefined)
  await hub.address.firstProbe
  t.strictSame(hub.told, [hub.here])
  hub.address.dummySettled('it is gone')
  await hub.address.probe()
  t.strictSame(hub.told.at(-1), null)
  t.match(hub.address.verboseLines().join(), /pods are not led to the hub: it is gone/)
  const failed = new Listening(t, changes)
  await failed.listening()
  failed.address.dummySettled('it cannot be made')
  await failed.address.firstProbe
  t.strictSame(failed.told, [null])
  t.match(failed.lines, [/it cannot be made/])
})

void t.test('certificates that pods would not take', async (t) => {
  const hub = await new Listening(t).open()
  const bad: readonly (readonly [string, typeof right, RegExp])[] = [
    [
      'of another authority',
      await issued({ ipAddresses: ['127.0.0.1'] }, others),
      /not one that pods trust/,
    ],
    [
      'for another address',
      await issued({ ipAddresses: ['192.0.2.1'] }),
      /does not name 127\.0\.0\.1/,
    ],
    ['for names only', await issued({ dnsNames: ['127.0.0.1'] }), /does not name 127\.0\.0\.1/],
    [
      'that has ended',
      await issued({ ipAddresses: ['127.0.0.1'], lifetimeMs: -1_000 }),
      /CERT_HAS_EXPIRED/,
    ],
  ]
  for (const [what, pair, why] of bad) {
    await hub.show(pair)
    t.strictSame(hub.told.at(-1), null, what)
    t.match(hub.address.verboseLines().join(), why)
    await hub.show(right)
    t.strictSame(hub.told.at(-1), hub.here, 'and back')
  }
})

void t.test('a certificate without a ClusterIP leads pods that dial it elsewhere', async (t) => {
  const hub = await new Listening(t).open()
  const elsewhere = { ...hub.here, forService: false }
  for (const [addresses, why] of [
    [undefined, /forwardkubesvctraffic does nothing: the ClusterIPs .* are not known yet/],
    [null, /cannot be read/],
    [['10.96.0.1', '127.0.0.1', 'fd00:10::1'], /does not name 10\.96\.0\.1 and fd00:10::1/],
  ] as const) {
    hub.serviceAddresses = addresses
    await hub.address.probe()
    t.strictSame(hub.told.at(-1), elsewhere)
    t.match(hub.address.verboseLines(), [/^\[\+\]hub-address pods are led to/, why])
  }
  await hub.show(await issued({ ipAddresses: ['127.0.0.1', '10.96.0.1', 'fd00:10:0::1'] }))
  t.strictSame(hub.told.at(-1), hub.here)
  t.equal(hub.address.verboseLines().length, 1)
})

void t.test('a certificate of another authority leads no pods to the hub', async (t) => {
  const hub = await new Listening(t).open()
  hub.ca = others.certificate
  await hub.address.probe()
  t.strictSame(hub.told.at(-1), null)
  hub.ca = `${others.certificate}\n${cluster.certificate}`
  await hub.address.probe()
  t.strictSame(hub.told.at(-1), hub.here, 'one of several will do')
})

void t.test('another server at the address is not the hub', async (t) => {
  const hub = await new Listening(t).open()
  await hub.show(await issued({ ipAddresses: ['127.0.0.1'] }), false)
  t.strictSame(hub.told.at(-1), null)
  t.match(hub.address.verboseLines().join(), /another server answers at/)
})

void t.test('a name that leads to loopback is loopback', async (t) => {
  const hub = await new Listening(t, (hub) => {
    hub.pods.hubAddress = { host: 'localhost', port: 0 }
    hub.pods.hostNetworkNode = false
  }).open()
  t.strictSame(hub.told, [null])
  t.match(hub.address.verboseLines().join(), /on loopback, where pods reach themselves/)
})

void t.test('where nothing answers pods are not led to the hub', async (t) => {
  const hub = await new Listening(t).open()
  hub.close()
  await hub.address.probe()
  await hub.address.probe()
  t.strictSame(hub.told, [hub.here, null, null])
  t.match(hub.address.verboseLines().join(), /no answer at/)
  t.equal(hub.lines.filter((line) => line.includes('no answer at')).length, 1, 'once')
})

void t.test('an unreadable certificate leads no pods to the hub', async (t) => {
  const hub = await new Listening(t).open()
  hub.shown = { ...right, certificate: 'no certificate' }
  await hub.address.probe()
  t.strictSame(hub.told.at(-1), null)
  t.match(hub.address.verboseLines().join(), /it cannot be looked at/)
})

void t.test('a server that accepts and stays silent is given up', async (t) => {
  const hub = new Listening(t)
  hub.address.listening(await portOf(t, createPlainServer()))
  await hub.address.firstProbe
  t.strictSame(hub.told, [null])
  t.match(hub.address.verboseLines().join(), /no answer at .* within/)
})

void t.test('once it is disposed of, it reports nothing', async (t) => {
  const hub = await new Listening(t).open()
  const looking = hub.address.probe()
  hub.address[Symbol.dispose]()
  await looking
  t.equal(hub.told.length, 1)
})
