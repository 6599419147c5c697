import { execFileSync } from 'node:child_process'
import { createServer } from 'node:net'
import { once } from 'node:events'
import pino from 'pino'
import t, { type Test } from 'tap'
import { DummyInterface } from '../../../../src/hub/wiring/dummy-interface.ts'
import { Client, objectOf, at } from '../../../kit/client.ts'
import { allServices, pods, pod, service, services, startCloud } from '../../../kit/cloud.ts'
import { goOffline, startTestHub } from '../../../kit/hub.ts'
import {
  enterOwnNetwork,
  ip,
  isInterface,
  startPod,
  withPath,
  withProgram,
} from '../../../kit/own-network.ts'
import { hubForPods } from '../../../kit/hub-for-pods.ts'
import { startJoinable } from '../../../kit/joinable.ts'
import { reachable } from '../../../kit/reachable.ts'
import { rootFolder } from '../../../kit/root-folder.ts'
import { until } from '../../../kit/until.ts'

enterOwnNetwork(t)

const name = 'hub-dummy0'
const address = '169.254.2.1'

/** A part by itself: what it tells, and where it listens. */
function startDummy(t: Test, rootDir = '/var/lib/of-the-test', wanted = { name, address }) {
  const told: (string | undefined)[] = []
  const listened: string[] = []
  const state = { refusal: undefined as string | undefined }
  const dummy = new DummyInterface(wanted, {
    rootDir,
    settled: (why) => told.push(why),
    log: pino({ level: 'silent' }),
  })
  t.teardown(() => dummy[Symbol.asyncDispose]())
  dummy.open((host) => {
    if (state.refusal !== undefined) return Promise.reject(new Error(state.refusal))
    listened.push(host)
    return Promise.resolve()
  })
  return { dummy, told, listened, state }
}

const ipInPath = (): string => execFileSync('which', ['ip'], { encoding: 'utf8' }).trim()

const shown = (): string => (isInterface(name) ? ip('address', 'show', 'dev', name) : '')

void t.test('a hub makes it, listens there, and removes it when it stops', async (t) => {
  const { dummy, told, listened } = startDummy(t)
  await dummy.check()
  t.match(shown(), /inet 169\.254\.2\.1\/32 scope link hub-dummy0/)
  t.match(shown(), /<[A-Z,_]*\bUP\b/)
  t.strictSame(told, [undefined], 'reported once')
  t.ok(listened.every((host) => host === address))
  t.equal(dummy.verboseLine(), '[+]dummy-interface hub-dummy0 has 169.254.2.1')
  await dummy[Symbol.asyncDispose]()
  t.equal(shown(), '')
})

void t.test('an IPv6 address can be used at once', async (t) => {
  const { dummy, told } = startDummy(t, '/r', { name, address: 'fd00::2:1' })
  await dummy.check()
  t.strictSame(told, [undefined])
  const server = createServer().listen(0, 'fd00::2:1')
  await once(server, 'listening')
  server.close()
  await dummy[Symbol.asyncDispose]()
  t.equal(shown(), '')
})

void t.test('an interface that a crash has left is reused, and removed in the end', async (t) => {
  const before = startDummy(t)
  await before.dummy.check()
  t.not(shown(), '', 'as a killed hub leaves it')
  const { dummy, told } = startDummy(t)
  await dummy.check()
  t.strictSame(told, [undefined])
  await dummy[Symbol.asyncDispose]()
  t.equal(shown(), '')
})

void t.test('a half-made interface is completed', async (t) => {
  ip('link', 'add', 'dev', name, 'type', 'dummy')
  t.teardown(() => isInterface(name) && ip('link', 'delete', 'dev', name))
  const { dummy, told } = startDummy(t)
  await dummy.check()
  t.strictSame(told, [undefined])
  t.match(shown(), 'inet 169.254.2.1/32')
})

void t.test('an interface that something else has made is used, and stays', async (t) => {
  ip('link', 'add', 'dev', name, 'type', 'bridge')
  t.teardown(() => ip('link', 'delete', 'dev', name))
  ip('link', 'set', 'dev', name, 'up')
  ip('address', 'add', `${address}/32`, 'dev', name)
  const { dummy, told } = startDummy(t)
  await dummy.check()
  t.strictSame(told, [undefined])
  await dummy[Symbol.asyncDispose]()
  t.match(shown(), 'inet 169.254.2.1/32')
  const without = rootFolder(t)
  await t.test('an existing interface needs no ip program', async (t) => {
    withPath(t, without)
    const { dummy, told } = startDummy(t)
    await dummy.check()
    t.strictSame(told, [undefined])
  })
})

void t.test('an interface of a hub with another --root-dir stays', async (t) => {
  const other = startDummy(t, '/of/another')
  await other.dummy.check()
  const { dummy, told } = startDummy(t)
  await dummy.check()
  t.strictSame(told, [undefined])
  await dummy[Symbol.asyncDispose]()
  t.match(shown(), 'inet 169.254.2.1/32')
})

void t.test('an interface that cannot be is reported with the reason', async (t) => {
  const fails = async (t: Test, why: RegExp): Promise<void> => {
    const { dummy, told, listened } = startDummy(t)
    await dummy.check()
    t.match(told, [why], 'once')
    t.match(dummy.verboseLine(), /^\[ \]dummy-interface the hub does not listen at 169\.254\.2\.1/)
    t.match(dummy.verboseLine(), why)
    t.strictSame(listened, [])
  }
  await t.test('another interface has the address', async (t) => {
    ip('address', 'add', `${address}/32`, 'dev', 'lo')
    t.teardown(() => ip('address', 'delete', `${address}/32`, 'dev', 'lo'))
    await fails(t, /lo has this address; --dummy-if-ip sets another/)
    t.equal(shown(), '', 'nothing is made')
  })
  await t.test('another interface has the name', async (t) => {
    ip('link', 'add', 'dev', name, 'type', 'bridge')
    t.teardown(() => ip('link', 'delete', 'dev', name))
    await fails(t, /it is a bridge; --dummy-if-name sets another/)
    t.notMatch(shown(), 'inet', 'nothing is added')
  })
  await t.test('the hub has no right to make it', async (t) => {
    const drop = 'setpriv --bounding-set=-all --inh-caps=-all --no-new-privs'
    withProgram(t, 'ip', `exec ${drop} ${ipInPath()} "$@"`)
    await fails(t, /Operation not permitted/)
  })
  await t.test('there is no ip', async (t) => {
    withPath(t, rootFolder(t))
    await fails(t, /the program ip \(iproute2\) is not there/)
  })
  await t.test('ip prints something else', async (t) => {
    withProgram(t, 'ip', 'echo nothing of the kind')
    await fails(t, /prints no JSON/)
  })
  await t.test('its address is refused', async (t) => {
    const refuses = 'case "$*" in *address\\ add*) echo no such address >&2; exit 2;; esac'
    withProgram(t, 'ip', `${refuses}; exec ${ipInPath()} "$@"`)
    await fails(t, /no such address/)
    t.equal(shown(), '', 'what was made is taken back')
  })
})

void t.test('an interface that has gone is made again, and a failure is retried', async (t) => {
  const { dummy, told, state } = startDummy(t)
  await dummy.check()
  ip('link', 'delete', 'dev', name)
  await dummy.check()
  t.match(shown(), 'inet 169.254.2.1/32')
  state.refusal = 'the port is taken'
  await dummy.check()
  t.match(told, [undefined, /the port is taken/])
  state.refusal = undefined
  await dummy.check()
  t.match(told, [undefined, /the port is taken/, undefined])
})

void t.test('pods reach the hub there, and are known by credentials alone', async (t) => {
  const cloud = await startCloud(t)
  cloud.sandbox.create(pods, pod('a'))
  const { hub, ca } = await hubForPods(t, cloud, address)
  const path = '/api/v1/namespaces/default/pods/a'
  const plain = `http://${address}:${hub.hub.proxyPort}${path}`
  const secure = `https://${address}:${hub.hub.proxySecurePort}${path}`
  const headers = { Authorization: `Bearer ${cloud.sandbox.token('operator')}` }
  const inPod = await startPod(t)
  for (const url of [plain, secure]) {
    t.match(await inPod.get({ url, ca, headers }), { status: 200 }, url)
    t.match(await inPod.get({ url, ca, headers: {} }), { status: 401 }, `${url} without a token`)
    const root = new Client({ url: new URL(url).origin, component: 'kubelet', tls: { ca } })
    t.equal((await root.get(path)).status, 401, 'root of the node is no caller there')
  }
  t.equal((await hub.as('kubelet').get(path)).status, 200, 'on loopback it is the node')
  t.equal(
    (await inPod.get({ url: `http://${address}:${hub.hub.opsPort}/metrics`, headers: {} })).body,
    'ECONNREFUSED',
    'the operators’ port is not there',
  )
  await t.test('Services lead pods there by default', async (t) => {
    cloud.sandbox.create(services, service('kubernetes', '10.96.0.1'))
    const list = objectOf(await hub.as('kubelet').get(allServices))
    t.equal(at(list, 'items', 0, 'spec', 'clusterIP'), address)
    t.equal(at(list, 'items', 0, 'spec', 'ports', 0, 'port'), hub.hub.proxySecurePort)
  })
  await goOffline(cloud, hub)
  t.match(await inPod.get({ url: secure, ca, headers }), { status: 200 }, 'offline, too')
  await hub.stop()
  t.equal(shown(), '')
})

void t.test('at an IPv6 address all is the same', async (t) => {
  const cloud = await startCloud(t)
  cloud.sandbox.create(pods, pod('a'))
  cloud.sandbox.create(services, service('kubernetes', '10.96.0.1'))
  const { hub, ca } = await hubForPods(t, cloud, 'fd00::2:1')
  const url = `https://[fd00::2:1]:${hub.hub.proxySecurePort}`
  const token = cloud.sandbox.token('operator')
  const path = '/api/v1/namespaces/default/pods/a'
  const withToken = new Client({ url, component: 'operator', tls: { ca }, token })
  const root = new Client({ url, component: 'kubelet', tls: { ca } })
  t.equal((await withToken.get(path)).status, 200)
  t.equal((await root.get(path)).status, 401, 'root of the node is no caller there')
  const list = objectOf(await hub.as('kubelet').get(allServices))
  t.equal(at(list, 'items', 0, 'spec', 'clusterIP'), 'fd00::2:1')
  await goOffline(cloud, hub)
  t.equal((await withToken.get(path)).status, 200, 'offline, too')
  t.equal((await root.get(path)).status, 401, 'nor offline')
  await hub.stop()
  t.equal(shown(), '')
})

void t.test('pods are not led to a certificate that they do not trust', async (t) => {
  const cloud = await startCloud(t)
  const { files } = await reachable(t)
  const hub = await startTestHub(t, {
    upstreams: [cloud],
    flags: ['--enable-dummy-if', `--upstream-ca=${files.ca}`],
  })
  await hub.logged('not one that pods trust')
  const [line] = String((await hub.ops.get('/readyz?verbose')).body).match(/.*hub-address.*/) ?? []
  t.match(line, /pods are not led to the hub: the certificate at 169\.254\.2\.1:\d+ is not one/)
})

void t.test('pods are led to a certificate of the cluster, and trust it', async (t) => {
  const joinable = await startJoinable(t)
  const { cloud, authority } = joinable
  cloud.sandbox.create(pods, pod('a'))
  const hub = await startTestHub(t, {
    upstreams: [cloud],
    flags: ['--enable-dummy-if', '--hub-cert-signer=kubernetes.io/kubelet-serving'],
  })
  await hub.logged('pods are led to the hub')
  const inPod = await startPod(t)
  const asked = {
    url: `https://${address}:${hub.hub.proxySecurePort}/api/v1/namespaces/default/pods/a`,
    ca: authority.certificate,
    headers: { Authorization: `Bearer ${cloud.sandbox.token('operator')}` },
  }
  t.match(await inPod.get(asked), { status: 200 })
})

void t.test('a hub of a node requests that certificate by default, for pods alone', async (t) => {
  const joinable = await startJoinable(t)
  const { cloud, authority } = joinable
  joinable.verdict = 'wait'
  cloud.sandbox.create(services, service('kubernetes', '10.96.0.1'))
  const hub = await startTestHub(t, { upstreams: [cloud], flags: ['--enable-dummy-if'] })
  const servedIp = async () =>
    at(objectOf(await hub.as('kubelet').get(allServices)), 'items', 0, 'spec', 'clusterIP')
  await until('the request for a certificate', () => joinable.requests.length > 0)
  t.equal(await servedIp(), '10.96.0.1', 'until it is signed, pods are not led to the hub')
  t.match(
    String((await hub.ops.get('/readyz?verbose')).body),
    /pods are not led to the hub: the certificate at 169\.254\.2\.1:\d+ is not one that pods trust/,
  )
  joinable.verdict = 'sign'
  await hub.logged('pods are led to the hub')
  t.equal(await servedIp(), address)
  const inPod = await startPod(t)
  const asked = {
    url: `https://${address}:${hub.hub.proxySecurePort}${allServices}`,
    ca: authority.certificate,
    headers: { Authorization: `Bearer ${cloud.sandbox.token('operator')}` },
  }
  t.match(await inPod.get(asked), { status: 200 })
  const [own = ''] = hub.ca.match(/^[^]*?-----END CERTIFICATE-----\n/) ?? []
  const onLoopback = new Client({ url: hub.secureUrl, component: 'kubelet', tls: { ca: own } })
  t.equal(
    (await onLoopback.get('/api/v1/pods')).status,
    401,
    'a kubelet sees the hub’s own, as before',
  )
  await cloud.unplug()
  await hub.restart()
  await hub.logged('pods are led to the hub')
  t.equal(await servedIp(), address, 'after a reboot offline, too')
})

void t.test('without the interface, or with an empty flag, it requests none', async (t) => {
  const joinable = await startJoinable(t)
  const { cloud } = joinable
  const off = await startTestHub(t, {
    upstreams: [cloud],
    flags: ['--enable-dummy-if', '--hub-cert-signer='],
  })
  await off.logged('not one that pods trust')
  t.notMatch(String((await off.ops.get('/readyz?verbose')).body), 'serving-certificate')
  await off.stop()
  withPath(t, rootFolder(t))
  const without = await startTestHub(t, { upstreams: [cloud], flags: ['--enable-dummy-if'] })
  await without.logged('the hub serves without')
  await without.online()
  t.strictSame(joinable.requests, [])
})

void t.test('a hub that cannot have it serves without', async (t) => {
  withPath(t, rootFolder(t))
  const cloud = await startCloud(t)
  const { files } = await reachable(t)
  const hub = await startTestHub(t, {
    upstreams: [cloud],
    flags: ['--enable-dummy-if', `--upstream-ca=${files.ca}`],
  })
  await hub.logged('the hub serves without')
  t.equal((await hub.as('kubelet').get('/api/v1/pods')).status, 200)
  const { status, body } = await hub.ops.get('/readyz?verbose')
  t.equal(status, 200)
  t.match(String(body), /\[ \]dummy-interface .* the program ip \(iproute2\) is not there/)
  t.match(String(body), /\[ \]hub-address pods are not led to the hub: .* ip \(iproute2\)/)
})
