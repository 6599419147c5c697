import t from 'tap'
import { X509Certificate } from 'node:crypto'
import { connect, createServer, type TLSSocket } from 'node:tls'
import { once } from 'node:events'
import {
  secretData,
  rotated,
  stateOfSecret,
  type ServingState,
} from '../../../src/cluster/serving/certificate-secret.ts'
import { CertificateAuthority } from '../../../src/certificates/authority.ts'
import { portOf } from '../../kit/wire/listening.ts'

const names = ['nodehub-cluster.kube-system.svc']
const day = 24 * 3_600_000
const start = Date.now()

/** What the state becomes when it is looked at then: certificates are made by the same clock. */
async function at(
  time: number,
  state: ServingState | undefined,
  { wanted = names } = {},
): Promise<ServingState> {
  const { now } = Date
  Date.now = () => time
  try {
    return await rotated(state, wanted, time)
  } finally {
    Date.now = now
  }
}

const made = (time = start): Promise<ServingState> => at(time, undefined)

const isSignedBy = (leaf: string, authority: string): boolean =>
  new X509Certificate(leaf).verify(new X509Certificate(authority).publicKey)

void t.test('a new certificate verifies against the bundle, and stays', async (t) => {
  const state = await made()
  t.equal(state.bundle.length, 1)
  t.equal(await at(start + 50 * 365 * day, state), state, 'and has no end')
  t.strictSame(stateOfSecret(secretData(state)), state, 'and the Secret holds all of it')
  const server = createServer({ cert: state.leaf.certificate, key: state.leaf.key })
  const port = await portOf(t, server)
  const socket: TLSSocket = connect({
    port,
    host: '127.0.0.1',
    servername: names[0]!,
    ca: state.bundle.join(''),
  })
  await once(socket, 'secureConnect')
  t.ok(socket.authorized)
  socket.destroy()
})

void t.test('a certificate that ends is replaced a month before', async (t) => {
  const authority = await CertificateAuthority.create('nodehub-cluster-ca', 365 * day)
  const leaf = await authority.issue({
    commonName: names[0]!,
    usage: 'server',
    dnsNames: names,
    lifetimeMs: 90 * day,
  })
  const state = { bundle: [authority.certificate], leaf }
  t.equal(await at(start + 50 * day, state), state)
  const next = await at(start + 61 * day, state)
  t.strictSame(next.bundle.slice(1), state.bundle, 'replicas may still show it')
  t.ok(isSignedBy(next.leaf.certificate, next.bundle[0]!))
})

void t.test('unusable state is replaced, and the former bundle stays trusted', async (t) => {
  const state = await made()
  for (const broken of [
    { ...state, leaf: { ...state.leaf, key: (await made()).leaf.key } },
    { ...state, leaf: (await made()).leaf },
    { ...state, leaf: { certificate: 'x', key: 'y' } },
    { ...state, bundle: [...(await made()).bundle] },
  ]) {
    const next = await at(start, broken)
    t.ok(isSignedBy(next.leaf.certificate, next.bundle[0]!))
    t.strictSame(next.bundle.slice(1), broken.bundle)
  }
  const wanted = [...names, 'another.kube-system.svc']
  const { leaf } = await at(start, state, { wanted })
  t.ok(new X509Certificate(leaf.certificate).checkHost(wanted[1]!), 'and where names are added')
})
