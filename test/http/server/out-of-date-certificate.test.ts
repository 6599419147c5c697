/**
 * Which client certificates a TLS listener reports as out of date: those of which a date is the
 * only fault, on loopback. OpenSSL names the date, too, where there are other faults.
 */
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { networkInterfaces } from 'node:os'
import { connect } from 'node:tls'
import t from 'tap'
import { turn } from '../../../src/base/clock.ts'
import {
  CertificateAuthority,
  type IssuedCertificate,
} from '../../../src/certificates/authority.ts'
import { mostIntermediates } from '../../../src/certificates/chain-validity.ts'
import type { Peer } from '../../../src/http/exchange/exchange.ts'
import { limits } from '../../../src/http/server/limits.ts'
import { listenSecurely } from '../../../src/http/server/listener.ts'
import {
  describedCertificate,
  validityOf,
  type CertificateDescription,
} from '../../kit/certificates.ts'
import { get, wholeReply } from '../../kit/listener.ts'
import { setClock } from '../../kit/set-clock.ts'
import { Wire, type Teardown } from '../../kit/wire/wire.ts'

const hubs = await CertificateAuthority.create('hub')
const years = 10 * 365 * 24
const root = await describedCertificate({
  commonName: 'cluster',
  isAuthority: true,
  hours: [-years, years],
})
const intermediate: CertificateDescription = {
  commonName: 'intermediate',
  isAuthority: true,
  signedBy: root,
}

const kubelet = { commonName: 'system:node:edge-1', organizations: ['system:nodes'] }
const ended: CertificateDescription = {
  ...kubelet,
  hours: [-48, -24],
  signedBy: root,
  purposes: ['clientAuth'],
}

interface Listening {
  /** What the listener reports of a client that shows these: its own and those of its chain. */
  readonly seen: (own: IssuedCertificate, ...chain: IssuedCertificate[]) => Promise<Peer['tls']>
  readonly wire: (own: IssuedCertificate) => Promise<Wire>
  /** Resolves when a request that is not answered has come. */
  readonly held: Promise<void>
  readonly replace: (...authorities: IssuedCertificate[]) => void
}

async function listening(
  t: Teardown,
  authorities: readonly IssuedCertificate[] = [root],
  host = '127.0.0.1',
): Promise<Listening> {
  const seen: Peer['tls'][] = []
  const held = Promise.withResolvers<void>()
  const own = await hubs.issue({ commonName: 'hub', usage: 'server', ipAddresses: [host] })
  const credentials = (trusted: readonly IssuedCertificate[]) => ({
    ...own,
    clientCa: trusted.map(({ certificate }) => certificate).join(''),
  })
  const listener = await listenSecurely({
    at: [{ host, port: 0 }],
    maxConnections: 100,
    credentials: credentials(authorities),
    onBroken: () => undefined,
    handler: async ({ peer, url }) => {
      seen.push(peer.tls)
      if (url === '/refused') return { ...wholeReply('who?'), status: 401 }
      if (url !== '/held') return wholeReply('ok')
      held.resolve()
      return new Promise(() => undefined)
    },
  })
  t.teardown(() => listener.close(0))
  const wire: Listening['wire'] = async ({ certificate, key }) => {
    const { port } = listener
    const socket = connect({ host, port, ca: hubs.certificate, cert: certificate, key })
    t.teardown(() => socket.destroy())
    await once(socket, 'secureConnect')
    return new Wire(socket)
  }
  return {
    wire,
    held: held.promise,
    seen: async ({ certificate, key }, ...chain) => {
      const cert = [certificate, ...chain.map((each) => each.certificate)].join('')
      const to = await wire({ certificate: cert, key })
      await to.write(get('/')).answer()
      return seen.pop()
    },
    replace: (...trusted) => listener.replaceCredentials(credentials(trusted)),
  }
}

const reported = (own: IssuedCertificate, dates = validityOf(own)) => {
  const { fingerprint256: fingerprint } = new X509Certificate(own.certificate)
  return { ...kubelet, ...dates, fingerprint }
}

const asOutOfDate = (own: IssuedCertificate, dates = validityOf(own)) => ({
  outOfDate: reported(own, dates),
})

void t.test('a certificate that has ended, or is yet to begin, is reported as such', async (t) => {
  const { seen } = await listening(t)
  for (const hours of [
    [-48, -24],
    [24, 48],
  ] as const) {
    const own = await describedCertificate({ ...ended, hours })
    t.strictSame(await seen(own), asOutOfDate(own))
  }
  const valid = await describedCertificate({ ...ended, hours: [-1, 1] })
  t.strictSame(await seen(valid), { certificate: reported(valid) })
})

void t.test('a certificate’s dates are those in which its whole chain is valid', async (t) => {
  const { seen } = await listening(t)
  await t.test('an intermediate that the client sends', async (t) => {
    const between = await describedCertificate({ ...intermediate, hours: [-40, 3] })
    const own = await describedCertificate({ ...ended, signedBy: between })
    const { validFrom } = validityOf(between)
    t.strictSame(
      await seen(own, between),
      asOutOfDate(own, { validFrom, validTo: validityOf(own).validTo }),
    )
    t.strictSame(
      await seen(own, root, between),
      asOutOfDate(own, { ...validityOf(own), validFrom }),
    )
  })
  await t.test('an authority that has ended itself', async (t) => {
    const old = await describedCertificate({
      commonName: 'cluster',
      isAuthority: true,
      hours: [-100, -2],
    })
    const own = await describedCertificate({ ...ended, signedBy: old, hours: [-3, 3] })
    const { seen } = await listening(t, [old])
    const { validTo } = validityOf(old)
    t.strictSame(await seen(own), asOutOfDate(own, { ...validityOf(own), validTo }))
  })
  await t.test('an intermediate among the authorities', async (t) => {
    const between = await describedCertificate({ ...intermediate, hours: [-72, 3] })
    const own = await describedCertificate({ ...ended, signedBy: between })
    t.strictSame(await (await listening(t, [root, between])).seen(own), asOutOfDate(own))
    t.strictSame(await (await listening(t, [between])).seen(own), asOutOfDate(own))
  })
})

void t.test('a certificate with another fault is not reported', async (t) => {
  const { seen } = await listening(t)
  const none = async (what: string, ...shown: [IssuedCertificate, ...IssuedCertificate[]]) =>
    t.strictSame(await seen(...shown), {}, what)
  const { signedBy: _none, ...bySelf } = ended
  await none('signed by itself', await describedCertificate(bySelf))
  const namesake = await describedCertificate({ commonName: 'cluster', isAuthority: true })
  const forged = await describedCertificate({ ...ended, signedBy: namesake })
  await none('signed by a namesake of the authority', forged)
  await none('with that namesake sent along', forged, namesake)
  const resembling = await describedCertificate({ ...ended, signedBy: namesake, names: root })
  await none('with the identifier of the authority’s key', resembling)
  const other = await describedCertificate({ commonName: 'other', isAuthority: true })
  await none('naming another issuer', await describedCertificate({ ...ended, names: other }))
  await none('for servers', await describedCertificate({ ...ended, purposes: ['serverAuth'] }))
  const { purposes: _all, ...forAnything } = ended
  await none('without a purpose', await describedCertificate(forAnything))
  const authority = { ...ended, isAuthority: true }
  await none('an authority’s own', await describedCertificate(authority))
  const developer = await describedCertificate({
    ...ended,
    commonName: 'developer',
    hours: [-72, 3],
  })
  const under = async (signedBy: IssuedCertificate) => describedCertificate({ ...ended, signedBy })
  await none('signed by a client of the authority', await under(developer), developer)
  const cannotSign = await describedCertificate({ ...intermediate, signsCertificates: false })
  await none('by one whose key may not sign', await under(cannotSign), cannotSign)
  const isNone = await describedCertificate({
    ...intermediate,
    isAuthority: false,
    signsCertificates: true,
  })
  await none('by one that is no authority', await under(isNone), isNone)
  const ofServers = await describedCertificate({ ...intermediate, purposes: ['serverAuth'] })
  await none('by an authority for servers', await under(ofServers), ofServers)
  const strange = await describedCertificate({ ...ended, hours: [-1, 1], isStrange: true })
  await none('refused for what is no date', strange)
})

void t.test('a chain is followed up to a number of intermediates', async (t) => {
  const { seen } = await listening(t)
  const chain = [root]
  for (const commonName of Array.from({ length: mostIntermediates + 1 }, (_, i) => `ca-${i}`)) {
    const signedBy = chain.at(-1) ?? root
    chain.push(await describedCertificate({ ...intermediate, commonName, signedBy }))
  }
  const shown = async (intermediates: number) => {
    const sent = chain.slice(1, intermediates + 1).toReversed()
    const own = await describedCertificate({ ...ended, signedBy: sent[0] ?? root })
    return 'outOfDate' in ((await seen(own, ...sent)) ?? {})
  }
  t.equal(await shown(mostIntermediates), true)
  t.equal(await shown(mostIntermediates + 1), false)
})

const own = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')?.address

void t.test(
  'beyond loopback no certificate is reported as out of date',
  { skip: own === undefined && 'this host has no address but those of loopback' },
  async (t) => {
    const { seen } = await listening(t, [root], own)
    t.strictSame(await seen(await describedCertificate(ended)), {})
    const valid = await describedCertificate({ ...ended, hours: [-1, 1] })
    t.match(await seen(valid), { certificate: kubelet })
  },
)

void t.test('an out-of-date certificate’s connection ends with its CA, too', async (t) => {
  const clock = setClock(t, { once: true })
  const { wire, held, replace } = await listening(t)
  const watch = await wire(await describedCertificate(ended))
  watch.write(get('/held'))
  await held
  replace(await describedCertificate({ commonName: 'other', isAuthority: true }))
  let isClosed = false
  void watch.closed.then(() => (isClosed = true))
  clock.forward(limits.withdrawnMs - 1)
  await turn()
  t.equal(isClosed, false, 'not before that of a valid one')
  clock.forward(1)
  await watch.closed
})

void t.test('a 401 closes an out-of-date certificate’s connection, and no other', async (t) => {
  const { wire } = await listening(t)
  const [kept, closed] = [
    await wire(await describedCertificate({ ...ended, hours: [-1, 1] })),
    await wire(await describedCertificate(ended)),
  ]
  for (const each of [kept, closed]) t.equal((await each.write(get('/')).answer()).status, 200)
  for (const each of [kept, closed])
    t.equal((await each.write(get('/refused')).answer()).status, 401)
  await closed.closed
  t.equal((await kept.write(get('/')).answer()).status, 200)
})
