import { renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  followCredentials,
  loadCredentials,
  type CredentialFollower,
} from '../../../src/http/client/credential-follower.ts'
import type { CredentialFiles, Credentials } from '../../../src/config/credentials.ts'
import { authority, type Pair } from '../../kit/wire/certificates.ts'
import type { Teardown } from '../../kit/wire/wire.ts'
import { keepProcessAlive } from '../../../src/base/clock.ts'
import { rootFolder } from '../../kit/root-folder.ts'

const pki = await authority()
const first = await pki.client('first')
const second = await pki.client('second')

function folder(t: Teardown): (name: string, content?: string) => string {
  const path = rootFolder(t)
  return (name, content) => {
    const file = join(path, name)
    if (content !== undefined) writeFileSync(file, content)
    return file
  }
}

/** Where the first certificate and its key lie, each in a file of its own. */
const pairIn = (at: (name: string, content?: string) => string) =>
  ({ kind: 'files', certificate: at('c', first.cert), key: at('k', first.key) }) as const

interface Followed {
  readonly follower: CredentialFollower
  /** What was reported so far: the chain of a certificate, or an error. */
  readonly told: unknown[]
}

/** A follower that checks when the test calls it. */
function follow(t: Teardown, where: CredentialFiles): Followed {
  const told: unknown[] = []
  const follower = followCredentials(
    where,
    loadCredentials(where),
    1_000_000,
    ({ certificate }: Credentials) => told.push(certificate?.chain),
    (cause) => told.push((cause as { code?: string }).code),
  )
  t.teardown(() => follower[Symbol.dispose]())
  return { follower, told }
}

void t.test('a certificate rotated by rename is reported once', async (t) => {
  const at = folder(t)
  const where = pairIn(at)
  const { follower, told } = follow(t, where)
  renameSync(at('k.new', second.key), where.key)
  renameSync(at('c.new', second.cert), where.certificate)
  follower.check()
  follower.check()
  t.strictSame(told, [second.cert])
})

void t.test('a combined file that the kubelet rotates behind a link is reported', async (t) => {
  const at = folder(t)
  const link = at('current.pem')
  symlinkSync(at('1.pem', first.cert + first.key), link)
  const { follower, told } = follow(t, { kind: 'files', certificate: link, key: link })
  symlinkSync(at('2.pem', second.cert + second.key), at('updated.pem'))
  renameSync(at('updated.pem'), link)
  follower.check()
  t.strictSame(told, [second.cert + second.key])
})

void t.test(
  'a half-written pair is reported as unusable, and as usable once it is whole',
  async (t) => {
    const at = folder(t)
    const where = pairIn(at)
    const { follower, told } = follow(t, where)
    at('k', second.key)
    follower.check()
    follower.check()
    t.strictSame(told, ['UNUSABLE_CREDENTIALS'])
    at('c', second.cert.slice(0, 100))
    follower.check()
    t.strictSame(told, ['UNUSABLE_CREDENTIALS', 'UNUSABLE_CREDENTIALS'])
    at('c', second.cert)
    follower.check()
    t.strictSame(told.slice(2), [second.cert])
  },
)

void t.test('a file missing for a moment does not end the following', async (t) => {
  const at = folder(t)
  const where = pairIn(at)
  const { follower, told } = follow(t, where)
  rmSync(where.certificate)
  follower.check()
  t.strictSame(told, ['UNUSABLE_CREDENTIALS'])
  at('c', first.cert)
  follower.check()
  t.equal(told.length, 1, 'it is back as it was')
  at('k', second.key)
  at('c', second.cert)
  follower.check()
  t.strictSame(told.slice(1), [second.cert])
})

void t.test('a touched or identically rewritten file reports no change', async (t) => {
  const at = folder(t)
  const where = { kind: 'kubeconfig', file: at('kubeconfig', kubeconfig('{ token: a }')) } as const
  const told: (string | undefined)[] = []
  const follower = followCredentials(
    where,
    loadCredentials(where),
    1_000_000,
    ({ token }) => told.push(token?.reveal()),
    () => told.push('unusable'),
  )
  t.teardown(() => follower[Symbol.dispose]())
  utimesSync(where.file, 1, 1)
  follower.check()
  renameSync(at('new', kubeconfig('{ token: a }')), where.file)
  follower.check()
  t.strictSame(told, [])
  at('kubeconfig', kubeconfig('{ token: b }'))
  follower.check()
  t.strictSame(told, ['b'])
})

void t.test('a change between reading and the first check is reported', async (t) => {
  const at = folder(t)
  const where = { kind: 'kubeconfig', file: at('kubeconfig', kubeconfig('{ token: a }')) } as const
  const first = loadCredentials(where)
  at('kubeconfig', kubeconfig('{ token: b }'))
  const told: (string | undefined)[] = []
  const follower = followCredentials(
    where,
    first,
    1_000_000,
    ({ token }) => told.push(token?.reveal()),
    () => told.push('unusable'),
  )
  t.teardown(() => follower[Symbol.dispose]())
  follower.check()
  t.strictSame(told, ['b'])
})

void t.test('a failed read is retried, and each outcome is reported once', async (t) => {
  const at = folder(t)
  const where = { kind: 'kubeconfig', file: at('kubeconfig', kubeconfig('{ token: a }')) } as const
  const told: (string | undefined)[] = []
  let failing = true
  const follower = followCredentials(
    where,
    loadCredentials(where),
    1_000_000,
    ({ token }) => told.push(token?.reveal()),
    () => told.push('unusable'),
    (files) => {
      if (failing) throw new Error('EMFILE')
      return loadCredentials(files)
    },
  )
  t.teardown(() => follower[Symbol.dispose]())
  at('kubeconfig', kubeconfig('{ token: b }'))
  follower.check()
  follower.check()
  t.strictSame(told, ['unusable'])
  failing = false
  follower.check()
  t.strictSame(told, ['unusable', 'b'])
})

void t.test('a symlink loop is reported as unusable, once', async (t) => {
  const at = folder(t)
  const where = { kind: 'kubeconfig', file: at('kubeconfig', kubeconfig('{ token: a }')) } as const
  const { follower, told } = follow(t, where)
  rmSync(where.file)
  symlinkSync(where.file, where.file)
  follower.check()
  follower.check()
  t.strictSame(told, ['UNUSABLE_CREDENTIALS'])
})

const kubeconfig = (user: string): string => `
apiVersion: v1
kind: Config
clusters: [{ name: c, cluster: { server: 'https://127.0.0.1:6443' } }]
users: [{ name: u, user: ${user} }]
contexts: [{ name: x, context: { cluster: c, user: u } }]
current-context: x
`

void t.test('a kubeconfig that names other files has them followed', async (t) => {
  const at = folder(t)
  const user = (name: string, pair: Pair): string =>
    `{ client-certificate: ${at(`${name}.crt`, pair.cert)}, client-key: ${at(`${name}.key`, pair.key)} }`
  const file = at('kubeconfig', kubeconfig(user('one', first)))
  const { follower, told } = follow(t, { kind: 'kubeconfig', file })
  at('kubeconfig', kubeconfig(user('two', second)))
  follower.check()
  t.strictSame(told, [second.cert])
  at('two.crt', first.cert)
  at('two.key', first.key)
  follower.check()
  t.strictSame(told, [second.cert, first.cert])
  at('one.crt', second.cert)
  follower.check()
  t.equal(told.length, 2, 'files that are no longer named are no longer followed')
})

void t.test('files are checked at intervals', async (t) => {
  const at = folder(t)
  const where = pairIn(at)
  using _alive = keepProcessAlive()
  const seen = new Promise<string | undefined>((resolve) => {
    const follower = followCredentials(
      where,
      loadCredentials(where),
      1,
      ({ certificate }) => resolve(certificate?.chain),
      () => undefined,
    )
    t.teardown(() => follower[Symbol.dispose]())
  })
  at('k', second.key)
  at('c', second.cert)
  t.equal(await seen, second.cert)
})

void t.test('moved credentials are read at their new place at once', async (t) => {
  const at = folder(t)
  const files = (name: string, { cert, key }: Pair) =>
    ({ kind: 'files', certificate: at(`${name}.c`, cert), key: at(`${name}.k`, key) }) as const
  const [here, there] = [files('here', first), files('there', second)]
  const { follower, told } = follow(t, here)
  follower.move(there)
  t.strictSame(told, [second.cert])
  renameSync(at('k', first.key), here.key)
  follower.check()
  t.strictSame(told, [second.cert], 'and nowhere else from then on')
  rmSync(there.key)
  follower.check()
  t.equal(told.length, 2)
})
