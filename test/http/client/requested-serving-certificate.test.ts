import { X509Certificate } from 'node:crypto'
import { readdirSync, rmSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import {
  CertificateAuthority,
  type IssuedCertificate,
} from '../../../src/certificates/authority.ts'
import { StoredPair } from '../../../src/certificates/stored-pair.ts'
import { makeSyncedFolder } from '../../../src/base/folder.ts'
import { Secret } from '../../../src/base/secret.ts'
import { anyApiCall } from '../../../src/http/client/api-call.ts'
import {
  RequestedServingCertificate,
  type RequestedServingOptions,
} from '../../../src/http/client/requested-serving-certificate.ts'
import { listAt, textAt } from '../../../src/api/kube/json-at.ts'
import { nodeName } from '../../kit/cloud.ts'
import { Condition } from '../../kit/condition.ts'
import { startJoinable, type JoinableCloud } from '../../kit/joinable.ts'
import { rootFolder } from '../../kit/root-folder.ts'

const pace = {
  firstRetryMs: 20,
  longestRetryMs: 40,
  longestDeniedMs: 80,
  approvalMs: 2_000,
  lookMs: 20,
}
const signingRequests = {
  group: 'certificates.k8s.io',
  version: 'v1',
  resource: 'certificatesigningrequests',
}
const names = ['169.254.2.1', 'fd00::2:1', 'kubernetes', 'kubernetes.default.svc']

/** A hub's requested certificate, and what it tells. */
class Requesting {
  readonly folder: string
  readonly shown: (string | undefined)[] = []
  readonly obtained: string[] = []
  readonly failures: string[] = []
  readonly #told = new Condition()
  readonly #joinable: JoinableCloud
  #current: RequestedServingCertificate | undefined

  constructor(t: Test, joinable: JoinableCloud) {
    this.folder = join(rootFolder(t), 'pki')
    makeSyncedFolder(this.folder, 0o700)
    this.#joinable = joinable
    t.teardown(() => this.stop())
  }

  get stored(): StoredPair {
    return new StoredPair(this.folder, 'nodehub-signed')
  }

  get current(): RequestedServingCertificate {
    if (!this.#current) throw new Error('it has not been started')
    return this.#current
  }

  async start(changes: Partial<RequestedServingOptions> = {}): Promise<this> {
    const { authority, cloud } = this.#joinable
    const { certificate, key } = await cloud.sandbox.clientCertificate(`system:node:${nodeName}`, [
      'system:nodes',
    ])
    const shown = { chain: certificate, key: new Secret(key) }
    const credentials = { ca: authority.certificate, certificate: shown, files: [] }
    this.#current = new RequestedServingCertificate({
      nodeName,
      signer: 'kubernetes.io/kubelet-serving',
      organizations: [],
      names: () => names,
      stored: this.stored,
      authorities: () => authority.certificate,
      call: (signal) => anyApiCall([new URL(cloud.url)], credentials, { signal }),
      onChange: (pair) => this.#tell(this.shown, pair?.certificate),
      onObtained: (pem) => this.#tell(this.obtained, pem),
      onFailure: (why) => this.#tell(this.failures, why),
      pace,
      ...changes,
    })
    return this
  }

  #tell<Item>(to: Item[], item: Item): void {
    to.push(item)
    this.#told.changed()
  }

  async stop(): Promise<void> {
    await this.#current?.[Symbol.asyncDispose]()
  }

  obtains(count = 1): Promise<void> {
    return this.#told.until(() => this.obtained.length >= count)
  }

  fails(why: RegExp): Promise<void> {
    return this.#told.until(() => this.failures.some((each) => why.test(each)))
  }

  shows(holds: () => boolean): Promise<void> {
    return this.#told.until(holds)
  }

  /** Puts a pair where an earlier process has left it. */
  async leave(
    lifetimeMs: number,
    names = ['kubernetes'],
    signedBy: CertificateAuthority = this.#joinable.authority,
  ): Promise<IssuedCertificate> {
    const pair = await signedBy.issue({
      commonName: `system:node:${nodeName}`,
      usage: 'server',
      dnsNames: names.filter((name) => isIP(name) === 0),
      ipAddresses: names.filter((name) => isIP(name) > 0),
      lifetimeMs,
    })
    await this.stored.replace(pair)
    return pair
  }
}

/** Passes on what the hub looks at, and waits until it has looked some more times. */
function looking(): [<Value>(value: Value) => Value, () => Promise<void>] {
  let looks = 0
  const looked = new Condition()
  const looksAt = <Value>(value: Value): Value => {
    looks += 1
    looked.changed()
    return value
  }
  const looksAgain = (): Promise<void> => {
    const least = looks + 3
    return looked.until(() => looks > least)
  }
  return [looksAt, looksAgain]
}

void t.test('a certificate is requested for the hub’s names, and stored', async (t) => {
  const joinable = await startJoinable(t)
  const hub = await new Requesting(t, joinable).start()
  await hub.obtains()
  const [pem = ''] = hub.obtained
  t.strictSame(hub.shown, [pem])
  t.equal(hub.current.certificate, pem)
  t.equal(hub.stored.read()?.certificate, pem)
  const leaf = new X509Certificate(pem)
  t.ok(leaf.verify(new X509Certificate(joinable.authority.certificate).publicKey))
  for (const name of names) t.match(leaf.subjectAltName, name.replace('fd00::2:1', 'FD00:0'))
  const [request] = joinable.requests
  t.match(textAt(request, 'metadata', 'name'), /^nodehub-/)
  t.equal(textAt(request, 'spec', 'signerName'), 'kubernetes.io/kubelet-serving')
  t.strictSame(listAt(request, 'spec', 'usages'), ['digital signature', 'server auth'])
  t.strictSame(joinable.requesters, [`system:node:${nodeName}`])
})

void t.test('a certificate is rotated, and the last good one is shown meanwhile', async (t) => {
  const joinable = await startJoinable(t)
  const hub = new Requesting(t, joinable)
  // Backdated by five minutes, it is over nine tenths of its life.
  const before = await hub.leave(10_000, names.slice(2))
  joinable.verdict = 'wait'
  await hub.start({ pace: { ...pace, approvalMs: 0 } })
  await hub.fails(/is not approved yet/)
  t.strictSame(hub.shown, [before.certificate])
  joinable.verdict = 'sign'
  await hub.obtains()
  t.strictSame(hub.shown, [before.certificate, hub.obtained[0]])
  t.equal(hub.current.fault, undefined)
})

void t.test('an expired certificate is replaced, and not shown', async (t) => {
  const joinable = await startJoinable(t)
  const hub = new Requesting(t, joinable)
  await hub.leave(-1_000, names)
  joinable.verdict = 'wait'
  await hub.start({ pace: { ...pace, approvalMs: 0 } })
  await hub.fails(/is not approved yet/)
  t.strictSame(hub.shown, [])
  joinable.verdict = 'sign'
  await hub.obtains()
  t.strictSame(hub.shown, hub.obtained)
})

void t.test('while the clock says 1970 a certificate is not shown, but kept', async (t) => {
  const joinable = await startJoinable(t)
  const hub = new Requesting(t, joinable)
  const { certificate } = await hub.leave(24 * 3_600_000)
  await hub.start({ names: () => ['kubernetes'] })
  const clock = t.capture(Date, 'now', () => 0)
  await hub.shows(() => hub.shown.length === 2)
  clock.restore()
  await hub.shows(() => hub.shown.length === 3)
  t.strictSame(hub.shown, [certificate, undefined, certificate])
  t.equal(hub.stored.read()?.certificate, certificate)
  t.strictSame(joinable.requesters, [], 'no other one is requested')
})

void t.test('a removed certificate is requested again, of the current signer', async (t) => {
  const joinable = await startJoinable(t)
  const hub = await new Requesting(t, joinable).start()
  await hub.obtains()
  rmSync(hub.stored.file)
  await hub.obtains(2)
  t.strictSame(hub.shown, [hub.obtained[0], undefined, hub.obtained[1]])
  t.equal(hub.stored.read()?.certificate, hub.obtained[1])
})

void t.test('a certificate that expires without a successor is withdrawn', async (t) => {
  const joinable = await startJoinable(t)
  joinable.verdict = 'wait'
  const hub = new Requesting(t, joinable)
  const before = await hub.leave(1_500, names)
  await hub.start({ pace: { ...pace, approvalMs: 0 } })
  await hub.shows(() => hub.shown.length === 2)
  t.strictSame(hub.shown, [before.certificate, undefined])
})

void t.test('a certificate for other names is shown until it is replaced', async (t) => {
  const joinable = await startJoinable(t)
  const hub = new Requesting(t, joinable)
  const before = await hub.leave(3_600_000_000, ['kubernetes'])
  await hub.start()
  await hub.obtains()
  t.strictSame(hub.shown, [before.certificate, hub.obtained[0]])
})

void t.test('no certificate is requested until all its names are known', async (t) => {
  const joinable = await startJoinable(t)
  const hub = new Requesting(t, joinable)
  const before = await hub.leave(3_600_000_000, names)
  const known: { names?: readonly string[] } = {}
  const [looksAt, looksAgain] = looking()
  await hub.start({ names: () => looksAt(known.names) })
  await looksAgain()
  t.strictSame(joinable.requesters, [])
  t.strictSame(hub.shown, [before.certificate], 'the stored one is shown')
  known.names = [...names, '10.96.0.1']
  hub.current.wake()
  await hub.obtains()
  const leaf = new X509Certificate(hub.obtained[0] ?? '')
  for (const each of ['169.254.2.1', '10.96.0.1']) t.equal(leaf.checkIP(each), each)
})

void t.test('a certificate whose CA the cluster withdraws is replaced', async (t) => {
  const joinable = await startJoinable(t)
  const hub = new Requesting(t, joinable)
  const former = await CertificateAuthority.create('former')
  const before = await hub.leave(86_400_000, names, former)
  let bundle = former.certificate + joinable.authority.certificate
  const [looksAt, looksAgain] = looking()
  await hub.start({ authorities: () => looksAt(bundle), pace: { ...pace, approvalMs: 0 } })
  await looksAgain()
  t.strictSame(joinable.requesters, [], 'while both authorities are good')
  joinable.verdict = 'wait'
  bundle = joinable.authority.certificate
  await hub.fails(/is not approved yet/)
  t.strictSame(hub.shown, [before.certificate], 'the former one is shown meanwhile')
  joinable.verdict = 'sign'
  await hub.obtains()
  t.strictSame(hub.shown, [before.certificate, hub.obtained[0]])
  await looksAgain()
  t.equal(joinable.requesters.length, 1)
})

void t.test('no second certificate is requested of a signer that pods do not trust', async (t) => {
  const joinable = await startJoinable(t)
  const hub = new Requesting(t, joinable)
  const other = await CertificateAuthority.create('other')
  const [looksAt, looksAgain] = looking()
  await hub.start({ authorities: () => looksAt(other.certificate) })
  await hub.obtains()
  await looksAgain()
  t.equal(joinable.requesters.length, 1)
  t.strictSame(hub.shown, hub.obtained)
})

void t.test('after a denial the hub retries with another key', async (t) => {
  const joinable = await startJoinable(t)
  joinable.verdict = 'deny'
  const hub = await new Requesting(t, joinable).start()
  await hub.fails(/was denied: ByTest: as it was to be/)
  t.match(hub.current.fault, /was denied/)
  joinable.verdict = 'sign'
  await hub.obtains()
  const keys = joinable.requests.map((each) => textAt(each, 'spec', 'request'))
  t.ok(new Set(keys).size > 1)
  t.strictSame(
    readdirSync(hub.folder).filter((name) => name.endsWith('.tmp')),
    [],
  )
})

void t.test('after a denial nothing makes another request before its time', async (t) => {
  const joinable = await startJoinable(t)
  joinable.verdict = 'deny'
  const hub = new Requesting(t, joinable)
  const hours = { ...pace, lookMs: 3_600_000, longestDeniedMs: 3_600_000 }
  await hub.start({ pace: hours })
  await hub.fails(/was denied: ByTest: as it was to be/)
  joinable.verdict = 'sign'

  await hub.stop()
  const again = Promise.withResolvers<void>()
  await hub.start({ pace: hours, onFailure: () => again.resolve() })
  await again.promise
  t.match(hub.current.fault, /was denied: .*; the next request is made at 20\d\d-/)

  hub.current.wake()
  const { certificate } = await hub.leave(3_600_000_000)
  hub.current.wake()
  await hub.shows(() => hub.shown.includes(certificate))
  t.match(hub.current.fault, /was denied/)
  t.equal(joinable.requests.length, 1)
})

void t.test('a request that waits is made once, until the cluster deletes it', async (t) => {
  const joinable = await startJoinable(t)
  joinable.verdict = 'wait'
  const { sandbox } = joinable.cloud
  const look = () =>
    sandbox.nextRequest(
      ({ method, path }) => method === 'GET' && /signingrequests\/nodehub-/.test(path),
    )
  const hub = await new Requesting(t, joinable).start({ pace: { ...pace, approvalMs: 0 } })
  for (let i = 0; i < 5; i++) await look()
  t.equal(joinable.requesters.length, 1)
  const nameOf = (): string => textAt(joinable.requests[0], 'metadata', 'name')
  const name = nameOf()
  sandbox.delete(signingRequests, name)
  await sandbox.nextRequest(({ method }) => method === 'POST')
  joinable.verdict = 'sign'
  await hub.obtains()
  t.equal(joinable.requesters.length, 2)
  t.equal(nameOf(), name)
})

void t.test('a certificate for fewer names than requested is refused', async (t) => {
  const joinable = await startJoinable(t)
  const { authority } = joinable
  const certify = authority.certify.bind(authority)
  authority.certify = (key, request) => certify(key, { ...request, dnsNames: ['kubernetes'] })
  const hub = await new Requesting(t, joinable).start()
  await hub.fails(/is for other names than the request/)
  t.equal(hub.stored.read(), undefined, 'nothing is stored')
  t.strictSame(hub.shown, [])
})

void t.test('requesting stops at once, also while an API server is silent', async (t) => {
  const joinable = await startJoinable(t)
  const asked = Promise.withResolvers<void>()
  using _ = joinable.cloud.sandbox.faults.freeze(({ path }) => {
    if (path.endsWith('signingrequests')) asked.resolve()
    return path.endsWith('signingrequests')
  })
  const servers = [new URL(joinable.cloud.url)]
  const credentials = { ca: joinable.authority.certificate, files: [] }
  const hub = await new Requesting(t, joinable).start({
    call: (signal) => anyApiCall(servers, credentials, { signal, patienceMs: 3_600_000 }),
  })
  await asked.promise
  await hub.stop()
  t.strictSame(hub.failures, [])
})
