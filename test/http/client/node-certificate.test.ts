import { X509Certificate } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { CertificateAuthority } from '../../../src/certificates/authority.ts'
import { parseBootstrapToken, type BootstrapConfig } from '../../../src/config/bootstrap.ts'
import type { CredentialFiles } from '../../../src/config/credentials.ts'
import { obtainedFiles } from '../../../src/config/root-dir.ts'
import { NodeCertificate } from '../../../src/http/client/node-certificate.ts'
import { loadCredentials } from '../../../src/http/client/credential-follower.ts'
import { Condition } from '../../kit/condition.ts'
import { rootFolder } from '../../kit/root-folder.ts'
import { nodeName } from '../../kit/cloud.ts'
import { joinToken, startJoinable, type JoinableCloud } from '../../kit/joinable.ts'

const pace = {
  firstRetryMs: 20,
  longestRetryMs: 40,
  longestDeniedMs: 80,
  approvalMs: 2_000,
  lookMs: 20,
  caMs: 20,
}

const subject = { commonName: `system:node:${nodeName}`, organizations: ['system:nodes'] }

const tokenOf = (text: string) => {
  const token = parseBootstrapToken(text)
  if (!token) throw new Error('no token')
  return token
}

/** What keeps a node's certificate, and what it has said. */
class Keeping {
  readonly rootDir: string
  readonly files: ReturnType<typeof obtainedFiles>
  readonly failures: string[] = []
  readonly caFailures: string[] = []
  readonly obtained: string[] = []
  isRefused = false
  servers: readonly JoinableCloud[]
  config: BootstrapConfig
  readonly #said = new Condition()
  readonly #kubelet: CredentialFiles
  #current: NodeCertificate | undefined

  constructor(
    t: Test,
    joinable: JoinableCloud,
    config: Partial<BootstrapConfig> = {},
    kubelet: CredentialFiles = { kind: 'none' },
  ) {
    this.rootDir = rootFolder(t)
    this.servers = [joinable]
    this.files = obtainedFiles(this.rootDir)
    this.#kubelet = kubelet
    this.config = {
      token: tokenOf(joinToken),
      file: undefined,
      caHashes: [joinable.caHash],
      anyCa: false,
      ca: undefined,
      ...config,
    }
    t.teardown(() => this.stop())
  }

  get current(): NodeCertificate {
    if (!this.#current) throw new Error('it has not been started')
    return this.#current
  }

  start(changes: Partial<typeof pace> = {}): this {
    const say = (to: string[]) => (text: string) => {
      to.push(text)
      this.#said.changed()
    }
    this.#current = new NodeCertificate({
      nodeName,
      rootDir: this.rootDir,
      servers: () => this.servers.map(({ cloud }) => new URL(cloud.url)),
      bootstrap: () => this.config,
      kubelet: this.#kubelet,
      isRefused: () => this.isRefused,
      onStored: () => this.#said.changed(),
      onObtained: say(this.obtained),
      onFailure: say(this.failures),
      onCaFailure: say(this.caFailures),
      pace: { ...pace, ...changes },
    })
    return this
  }

  async stop(): Promise<void> {
    await this.#current?.[Symbol.asyncDispose]()
  }

  async fails(why: RegExp): Promise<void> {
    await this.#said.until(() => this.failures.some((each) => why.test(each)))
  }

  async failsToFollowCa(why: RegExp): Promise<void> {
    await this.#said.until(() => this.caFailures.some((each) => why.test(each)))
  }

  /** Resolves once this is the CA that is stored. */
  async believes(ca: string): Promise<void> {
    await this.#said.until(
      () => existsSync(this.files.ca) && readFileSync(this.files.ca, 'utf8') === ca,
    )
  }

  async obtains(count = 1): Promise<void> {
    await this.#said.until(() => this.obtained.length >= count)
  }

  /** Puts a pair where an earlier process has left it. */
  store(pair: { certificate: string; key: string }, ca: string): void {
    mkdirSync(this.files.folder, { recursive: true })
    writeFileSync(this.files.ca, ca)
    const name = 'nodehub-client-2020-01-01-00-00-00.pem'
    writeFileSync(join(this.files.folder, name), pair.certificate + pair.key)
    symlinkSync(name, this.files.pair)
  }
}

void t.test('a token is enough for a certificate, whose key never leaves the node', async (t) => {
  const joinable = await startJoinable(t)
  const keeping = new Keeping(t, joinable).start()
  await keeping.obtains()
  const { certificate, ca } = loadCredentials({
    kind: 'bootstrap',
    pair: keeping.files.pair,
    ca: keeping.files.ca,
  })
  t.equal(ca, joinable.authority.certificate)
  const leaf = new X509Certificate(certificate?.chain ?? '')
  t.equal(leaf.subject, `O=system:nodes\nCN=system:node:${nodeName}`)
  t.match(certificate?.key.reveal(), /^-----BEGIN PRIVATE KEY-----$/m, 'PKCS 8')
  t.match(joinable.requests, [
    {
      spec: {
        signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
        usages: ['digital signature', 'client auth'],
      },
    },
  ])
  t.equal(statSync(keeping.files.folder).mode & 0o777, 0o700)
  for (const name of readdirSync(keeping.files.folder))
    t.equal(statSync(join(keeping.files.folder, name)).mode & 0o777, 0o600, name)
  await keeping.stop()
  const before = joinable.requesters.length
  keeping.start()
  await keeping.stop()
  t.equal(joinable.requesters.length, before, 'the next start has it')
})

void t.test('an impostor API server has the hub store nothing', async (t) => {
  const joinable = await startJoinable(t)
  const other = await CertificateAuthority.create('cluster-ca')
  const foreign = await startJoinable(t)
  const nothingWritten = (t: Test, keeping: Keeping): void => {
    t.notOk(existsSync(keeping.files.ca))
    t.notOk(existsSync(keeping.files.pair))
  }

  await t.test('with a CA of its own', async (t) => {
    const keeping = new Keeping(t, joinable, { caHashes: [foreign.caHash] }).start()
    await keeping.fails(/public key sha256:.*which --discovery-token-ca-cert-hash does not name/)
    nothingWritten(t, keeping)
  })
  await t.test('with a CA of its own, where any would do but one is pinned', async (t) => {
    const pinned = { caHashes: [foreign.caHash], anyCa: true }
    const keeping = new Keeping(t, joinable, pinned).start()
    await keeping.fails(/which --discovery-token-ca-cert-hash does not name/)
    nothingWritten(t, keeping)
  })
  await t.test('without the secret of the token', async (t) => {
    foreign.accept('abcdef.ffffffffffffffff')
    const keeping = new Keeping(t, foreign, { anyCa: true }).start()
    await keeping.fails(/is not that of the bootstrap token abcdef: its secret is another one/)
    nothingWritten(t, keeping)
  })
  await t.test('with a signature of something else', async (t) => {
    foreign.accept(joinToken, 'another text')
    const keeping = new Keeping(t, foreign, { anyCa: true }).start()
    await keeping.fails(/is not that of the bootstrap token/)
    nothingWritten(t, keeping)
  })
  await t.test('with a signature of another token', async (t) => {
    const keeping = new Keeping(t, joinable, { token: tokenOf('zzzzzz.0123456789abcdef') }).start()
    await keeping.fails(/is not signed with the bootstrap token zzzzzz/)
    nothingWritten(t, keeping)
  })
  await t.test('with an answer without an end', async (t) => {
    foreign.announce('x'.repeat(1024 * 1024), joinToken)
    const keeping = new Keeping(t, foreign, { anyCa: true }).start()
    await keeping.fails(/the answer has no end/)
    nothingWritten(t, keeping)
  })
  await t.test('with another CA than the given one', async (t) => {
    const ca = join(t.testdir({ ca: other.certificate }), 'ca')
    const keeping = new Keeping(t, joinable, { ca, caHashes: [] }).start()
    await keeping.fails(/is not signed by the CA/)
    t.strictSame(joinable.requesters, [], 'the token went to no server')
  })
})

void t.test('a hub retries until it obtains what it lacks', async (t) => {
  const joinable = await startJoinable(t)

  await t.test('the API server is away', async (t) => {
    await joinable.cloud.unplug()
    const keeping = new Keeping(t, joinable).start()
    await keeping.fails(/ECONNREFUSED/)
    t.match(keeping.current.fault, /ECONNREFUSED/)
    await joinable.cloud.plug()
    await keeping.obtains()
    t.equal(keeping.current.fault, undefined)
  })
  await t.test('the token is used up, until another is handed over', async (t) => {
    joinable.cloud.sandbox.revoke(joinToken)
    const keeping = new Keeping(t, joinable).start()
    await keeping.fails(/with the bootstrap token abcdef: .* answered 401/)
    joinable.accept('ghijkl.0123456789abcdef')
    await keeping.current.replaceToken(tokenOf('ghijkl.0123456789abcdef'))
    await keeping.obtains()
    t.equal(statSync(keeping.files.token).mode & 0o777, 0o600)
    t.notMatch(keeping.failures.join(), /0123456789abcdef/)
    joinable.accept(joinToken)
  })
  await t.test('the token that was handed over last is stored, and used again', async (t) => {
    const keeping = new Keeping(t, joinable, { token: undefined }).start()
    await keeping.current.replaceToken(tokenOf('bbbbbb.bbbbbbbbbbbbbbbb'))
    await keeping.fails(/with the bootstrap token bbbbbb/)
    const good = 'ghijkl.0123456789abcdef'
    await keeping.current.replaceToken(tokenOf(good))
    await keeping.obtains()
    rmSync(keeping.files.pair)
    keeping.current.wake()
    await keeping.obtains(2)
    t.equal(joinable.requesters.at(-1), 'system:bootstrap:ghijkl')
    await keeping.stop()
    t.equal(readFileSync(keeping.files.token, 'utf8').trim(), good)
  })
  await t.test('the request is denied, and another is made with another key', async (t) => {
    joinable.verdict = 'deny'
    const keeping = new Keeping(t, joinable).start()
    await keeping.fails(/CertificateSigningRequest nodehub-\w+ was denied: ByTest: as it was to be/)
    joinable.verdict = 'sign'
    await keeping.obtains()
    const keys = joinable.requests.map((each) => JSON.stringify(each['spec']))
    t.equal(new Set(keys).size, keys.length)
  })
  await t.test('the wait after a denial ends when a token is handed over', async (t) => {
    joinable.verdict = 'deny'
    const keeping = new Keeping(t, joinable).start({ lookMs: 3_600_000 })
    await keeping.fails(/was denied/)
    joinable.verdict = 'sign'
    await keeping.current.replaceToken(tokenOf(joinToken))
    await keeping.obtains()
    t.equal(keeping.current.fault, undefined)
  })
  await t.test('a request that waits is found again by the next process', async (t) => {
    joinable.verdict = 'wait'
    const before = joinable.requests.length
    const keeping = new Keeping(t, joinable).start()
    await joinable.cloud.sandbox.nextRequest(
      ({ method, path }) => method === 'GET' && /signingrequests\/nodehub-/.test(path),
    )
    await keeping.stop()
    keeping.start()
    await joinable.cloud.sandbox.nextRequest(
      ({ method, path }) => method === 'GET' && /signingrequests\/nodehub-/.test(path),
    )
    joinable.verdict = 'sign'
    await keeping.obtains()
    t.equal(joinable.requests.length, before + 1, 'for one key')
  })
})

void t.test('a chain that TLS does not take is refused, and not stored', async (t) => {
  const joinable = await startJoinable(t)
  joinable.chain = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
  const keeping = new Keeping(t, joinable).start()
  await keeping.fails(/the signer issued no certificate of/)
  t.notOk(existsSync(keeping.files.pair))
  joinable.chain = ''
  await keeping.obtains()
})

void t.test('a certificate is renewed with itself before it ends', async (t) => {
  const joinable = await startJoinable(t)
  const keeping = new Keeping(t, joinable)
  const first = await joinable.authority.issue({
    ...subject,
    usage: 'client',
    lifetimeMs: 3_600_000,
  })
  keeping.store(first, joinable.authority.certificate)
  const start = Date.now()
  let time = start + 0.6 * 3_600_000
  t.capture(Date, 'now', () => time)
  keeping.start()
  await joinable.cloud.as('kubelet').get('/readyz')
  await keeping.stop()
  t.strictSame(joinable.requesters, [], 'not yet')
  time = start + 0.9 * 3_600_000
  keeping.start()
  await keeping.obtains()
  t.strictSame(joinable.requesters, [subject.commonName], 'without a token')
  t.notMatch(readFileSync(keeping.files.pair, 'utf8'), first.key, 'for another key')
})

void t.test(
  'a certificate that has ended, or is refused, is replaced with the token',
  async (t) => {
    const joinable = await startJoinable(t)
    const ended = { ...subject, usage: 'client', lifetimeMs: -1_000 } as const

    await t.test('ended', async (t) => {
      const keeping = new Keeping(t, joinable)
      keeping.store(await joinable.authority.issue(ended), joinable.authority.certificate)
      keeping.start()
      await keeping.obtains()
      t.strictSame(joinable.requesters.slice(-1), ['system:bootstrap:abcdef'])
    })
    await t.test('refused', async (t) => {
      const keeping = new Keeping(t, joinable)
      const elsewhere = await CertificateAuthority.create('elsewhere')
      keeping.store(
        await elsewhere.issue({ ...subject, usage: 'client' }),
        joinable.authority.certificate,
      )
      keeping.isRefused = true
      keeping.start()
      await keeping.obtains()
      t.strictSame(joinable.requesters.slice(-1), ['system:bootstrap:abcdef'])
    })
    await t.test('refused again', async (t) => {
      const keeping = new Keeping(t, joinable)
      keeping.store(
        await joinable.authority.issue({ ...subject, usage: 'client' }),
        joinable.authority.certificate,
      )
      keeping.isRefused = true
      keeping.start()
      await keeping.obtains(2)
      t.equal(keeping.current.fault, undefined)
    })
    await t.test('or with the kubelet’s certificate', async (t) => {
      const kubelets = await joinable.authority.issue({ ...subject, usage: 'client' })
      const file = join(t.testdir({ pem: kubelets.certificate + kubelets.key }), 'pem')
      const config = { token: undefined }
      const keeping = new Keeping(t, joinable, config, {
        kind: 'files',
        certificate: file,
        key: file,
      })
      keeping.store(await joinable.authority.issue(ended), joinable.authority.certificate)
      keeping.start()
      await keeping.obtains()
      t.strictSame(joinable.requesters.slice(-1), [subject.commonName])
    })
    await t.test('by a clock at 1970 it is left alone', async (t) => {
      const keeping = new Keeping(t, joinable)
      const pair = await joinable.authority.issue({ ...subject, usage: 'client' })
      keeping.store(pair, joinable.authority.certificate)
      const before = joinable.requesters.length
      const clock = t.capture(Date, 'now', () => 0)
      keeping.start()
      await joinable.cloud.as('kubelet').get('/readyz')
      clock.restore()
      await keeping.stop()
      t.equal(joinable.requesters.length, before)
      t.equal(readFileSync(keeping.files.pair, 'utf8'), pair.certificate + pair.key)
    })
  },
)

void t.test('a rotated CA is followed, as far as the present one vouches for it', async (t) => {
  const [old, next, foreign] = await Promise.all([1, 2, 3].map(() => startJoinable(t)))
  if (!old || !next || !foreign) throw new Error('there are three')
  const oldCa = old.authority.certificate
  const nextCa = next.authority.certificate
  const keeping = new Keeping(t, old).start()
  await keeping.obtains()
  const both = oldCa + nextCa

  await t.test('a bundle that would not verify the API server is ignored', async (t) => {
    old.announce(nextCa, joinToken)
    await keeping.failsToFollowCa(/is not signed by the CA/)
    t.equal(readFileSync(keeping.files.ca, 'utf8'), oldCa)
  })
  await t.test('a bundle of both CAs is adopted', async (t) => {
    old.announce(both, joinToken)
    await keeping.believes(both)
    t.equal(readFileSync(keeping.files.ca, 'utf8'), both)
  })
  await t.test('the new CA alone is adopted, once no API server needs the old one', async (t) => {
    next.announce(nextCa, joinToken)
    old.announce(nextCa, joinToken)
    keeping.caFailures.length = 0
    keeping.servers = [next, old]
    await keeping.failsToFollowCa(/is not signed by the CA/)
    t.equal(readFileSync(keeping.files.ca, 'utf8'), both, 'one server still does')
    keeping.servers = [next]
    await keeping.believes(nextCa)
  })
  await t.test('a bundle of an API server that the CA has not signed is ignored', async (t) => {
    foreign.announce(nextCa + foreign.authority.certificate, joinToken)
    keeping.caFailures.length = 0
    keeping.servers = [foreign]
    await keeping.failsToFollowCa(/is not signed by the CA/)
    keeping.servers = [foreign, next]
    next.announce(both, joinToken)
    await keeping.believes(both)
    t.notMatch(readFileSync(keeping.files.ca, 'utf8'), foreign.authority.certificate)
  })
  await t.test('a given CA is its owner’s to change', async (t) => {
    const ca = join(t.testdir({ ca: oldCa }), 'ca')
    const given = new Keeping(t, old, { ca }).start()
    await given.obtains()
    old.announce(both, joinToken)
    await given.stop()
    t.notOk(existsSync(given.files.ca))
    t.equal(readFileSync(ca, 'utf8'), oldCa)
  })
  t.strictSame(keeping.failures, [])
})

void t.test('a bootstrap file has all that is needed', async (t) => {
  const joinable = await startJoinable(t)
  const kubeconfig = {
    clusters: [
      {
        name: 'a',
        cluster: {
          server: 'https://not-used',
          'certificate-authority-data': Buffer.from(joinable.authority.certificate).toString(
            'base64',
          ),
        },
      },
    ],
    users: [{ name: 'a', user: { token: joinToken } }],
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
    'current-context': 'a',
  }
  const file = join(t.testdir({ conf: JSON.stringify(kubeconfig) }), 'conf')
  const keeping = new Keeping(t, joinable, { token: undefined, file, caHashes: [] }).start()
  await keeping.obtains()
  t.strictSame(joinable.requesters, ['system:bootstrap:abcdef'])
  const other = new Keeping(t, joinable, {
    token: undefined,
    file,
    caHashes: [`sha256:${'0'.repeat(64)}`],
  })
  await other.start().fails(/has none of the public keys/)
})
