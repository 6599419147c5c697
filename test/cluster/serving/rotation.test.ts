import t from 'tap'
import { X509Certificate } from 'node:crypto'
import { connect, createServer, type TLSSocket } from 'node:tls'
import { once } from 'node:events'
import {
  secretData,
  rotated,
  stateOfSecret,
  type ServingState,
} from '../../../src/cluster/serving/rotation.ts'
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

void t.test('a new certificate verifies against the bundle, and stays while young', async (t) => {
  const state = await made()
  t.equal(state.bundle.length, 1)
  t.equal(await at(start + 50 * day, state), state, 'nothing is due')
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

void t.test('the same CA renews a leaf after two thirds of its lifetime', async (t) => {
  const state = await made()
  const next = await at(start + 61 * day, state)
  t.not(next.leaf.certificate, state.leaf.certificate)
  t.strictSame(next.bundle, state.bundle)
  const wanted = [...names, 'another.kube-system.svc']
  t.ok(
    new X509Certificate((await at(start, state, { wanted })).leaf.certificate).checkHost(
      wanted[1]!,
    ),
    'and when it is to be for other names',
  )
})

void t.test('an old CA is replaced, and stays trusted until it ends', async (t) => {
  const state = await made()
  const old = await at(start + 14 * 365 * day, state)
  t.not(old.signing.certificate, state.signing.certificate)
  t.ok(isSignedBy(old.leaf.certificate, old.signing.certificate))
  t.strictSame(old.bundle, [old.signing.certificate, state.signing.certificate])
  const later = await at(start + 28 * 365 * day, old)
  t.strictSame(later.bundle, [later.signing.certificate, old.signing.certificate])
})

void t.test('unusable state is replaced, and the former bundle stays trusted', async (t) => {
  const state = await made()
  for (const broken of [
    { ...state, leaf: { ...state.leaf, key: (await made()).leaf.key } },
    { ...state, leaf: (await made()).leaf },
    { ...state, bundle: [...(await made()).bundle] },
    { ...state, signing: { certificate: 'x', key: 'y' } },
  ]) {
    const next = await at(start, broken)
    t.ok(isSignedBy(next.leaf.certificate, next.signing.certificate))
    t.strictSame(next.bundle.slice(1), broken.bundle)
  }
  t.not((await at(start + 91 * day, state)).signing.certificate, state.signing.certificate)
})
