import t from 'tap'
import type { Incoming } from '../../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import {
  authenticate,
  type AnonymousLoopback,
  type AuthenticationRules,
  type Caller,
} from '../../../src/hub/identity/caller.ts'
import { Claims } from '../../../src/hub/identity/claims.ts'
import { ClusterKeys } from '../../../src/hub/identity/cluster-keys.ts'
import { TokenVerdicts } from '../../../src/hub/identity/token-verdicts.ts'
import { StatusError } from '../../../src/api/kube/status.ts'
import { SocketOwners } from '../../../src/hub/identity/socket-owner.ts'
import { noOutage, nothingAccepted } from '../../kit/no-outage.ts'

const peer = {
  address: '127.0.0.1',
  port: 40_000,
  localAddress: '127.0.0.1',
  localPort: 10_261,
  inode: '2',
}

const request = (...headers: string[]): Incoming => ({
  id: 'id',
  method: 'GET',
  url: '/api/v1/pods',
  headers: new HeaderList(headers),
  peer,
  upgrade: false,
  signal: new AbortController().signal,
})

/** The table of a kernel in which `uid` owns the client's end of the connection. */
const tableOf = (uid: number): string =>
  ` 0: 0100007F:9C40 0100007F:2815 01 00000000:00000000 00:00000000 00000000 ${uid} 0 1 1
  1: 0100007F:2815 0100007F:9C40 01 00000000:00000000 00:00000000 00000000 0 0 2 1`

const ownedBy = (uid: number | undefined): SocketOwners =>
  new SocketOwners(async () => (uid === undefined ? '' : tableOf(uid)))

const claims = (key = 'key of this hub'): Claims => {
  const proofs = new TokenVerdicts('/nowhere/proofs.json', () => undefined)
  return new Claims(Buffer.from(key), proofs, new ClusterKeys('/nowhere/keys.json'))
}

const rules = (anonymousLoopback: AnonymousLoopback, uid?: number): AuthenticationRules => ({
  nodeName: 'edge-1',
  plainServed: true,
  anonymousLoopback,
  claims: claims(),
  owners: ownedBy(uid),
  accepted: nothingAccepted,
  outage: noOutage,
})

/** The rules of a hub that has been offline since this began. */
const offline = (rules: AuthenticationRules): AuthenticationRules => ({
  ...rules,
  outage: { ...noOutage, offline: async () => new AbortController().signal },
})

const authenticated = async (...asked: Parameters<typeof authenticate>): Promise<Caller> =>
  authenticate(...asked)

/** The code of the Status that refuses a caller; 0 where it is let in. */
const refusal = (incoming: Incoming, rules: AuthenticationRules): Promise<number> =>
  authenticated(incoming, rules).then(
    () => 0,
    (error: unknown) => (error instanceof StatusError ? error.status.code : -1),
  )

// The rest after a long read of the kernel's table, as on a busy machine, keeps no process running.
const running = setInterval(() => undefined, 60_000)
t.teardown(() => clearInterval(running))

void t.test('a caller is answered 503 where the owner of its socket cannot be read', async (t) => {
  const failing = (cause: Error): AuthenticationRules => ({
    ...rules('root'),
    owners: new SocketOwners(async () => {
      throw cause
    }),
  })
  const full = failing(Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' }))
  const withoutCertificate: Incoming = {
    ...request(),
    peer: { ...peer, tls: { withoutCertificate: true } },
  }
  for (const [incoming, by] of [
    [request(), full],
    [withoutCertificate, offline(full)],
  ] as const) {
    const error = await authenticated(incoming, by).catch((cause: unknown) => cause)
    t.match(error, {
      status: {
        code: 503,
        message: 'the hub cannot look up which user owns the socket of the caller',
      },
      reason: /^the hub cannot look up .*: EMFILE: too many open files$/,
    })
  }
  // A mistake in the program is logged where the request fails.
  await t.rejects(authenticated(request(), failing(new TypeError('a mistake'))), TypeError)
})

void t.test(
  'the node’s credentials cannot impersonate, in any case of the field name',
  async (t) => {
    for (const field of ['Impersonate-User', 'impersonate-uid', 'IMPERSONATE-EXTRA-SCOPES']) {
      const asked = authenticated(request(field, 'jane'), rules('root', 0))
      const { status } = (await asked.then(
        () => t.fail('it is let in'),
        (error: unknown) => error,
      )) as StatusError
      t.match(status, { code: 403, reason: 'Forbidden', message: /a token of your own/ }, field)
    }
  },
)

void t.test('without credentials, root is the node, and no other user is', async (t) => {
  t.strictSame(await authenticated(request(), rules('root', 0)), {
    identity: 'node',
    credential: 'node',
  })
  for (const uid of [1, 1000, 65_534, 4_294_967_295, undefined]) {
    t.equal(await refusal(request(), rules('root', uid)), 401, String(uid))
  }
})

void t.test('with --anonymous-loopback=node any local user is the node', async (t) => {
  t.strictSame(await authenticated(request(), rules('node', 1000)), {
    identity: 'node',
    credential: 'node',
  })
})

void t.test('with --anonymous-loopback=none not even root is', async (t) => {
  t.equal(await refusal(request(), rules('none', 0)), 401)
})

void t.test('a caller with a token is its holder, never the node, and uses it alone', async (t) => {
  for (const mode of ['root', 'node', 'none'] as const) {
    const caller = await authenticated(request('Authorization', 'Bearer abc'), rules(mode, 0))
    t.match(caller.identity, /^token:[\w-]{43}$/)
    t.equal(caller.credential, 'caller')
  }
})

void t.test('an empty or a strange Authorization does not make its sender the node', async (t) => {
  for (const value of [
    '',
    ' ',
    'Basic eDp5',
    'Bearer',
    'Bearer  x',
    'Bearer x\ty',
    'x'.repeat(60_000),
  ]) {
    const caller = await authenticated(request('authorization', value), rules('node', 0))
    t.equal(caller.credential, 'caller', value.slice(0, 20))
    t.equal(caller.identity, 'unproven')
    t.equal(caller.claim?.holds(), false)
  }
})

void t.test(
  'a token’s identity reveals nothing of it, is stable, and differs by token and key',
  async (t) => {
    const token = 'Bearer eyJhbGciOi.eyJzdWIi.c2lnbmF0dXJl'
    const identity = async (value: string, key = 'key of this hub'): Promise<string> =>
      (
        await authenticated(request('Authorization', value), {
          ...rules('none'),
          claims: claims(key),
        })
      ).identity
    const first = await identity(token)
    for (const part of token.split(/[ .]/)) t.notMatch(first, part)
    t.equal(await identity(token), first)
    t.not(await identity(`${token}x`), first)
    t.not(await identity(token, 'another key'), first)
  },
)

void t.test(
  'over TLS without a certificate the rules are the same, but only offline',
  async (t) => {
    const silent: Incoming = { ...request(), peer: { ...peer, tls: { withoutCertificate: true } } }
    t.equal(await refusal(silent, rules('root', 0)), 401, 'online')
    t.equal(await refusal(silent, rules('node', 0)), 401, 'online')
    const { knownUntil, ...caller } = await authenticated(silent, offline(rules('root', 0)))
    t.strictSame(caller, { identity: 'node', credential: 'node' })
    t.equal(knownUntil?.aborted, false, 'for as long as the hub is offline')
    const refused = { ...silent, peer: { ...peer, tls: {} } }
    t.equal(await refusal(refused, offline(rules('node', 0))), 401, 'with a certificate of others')
    const [here, there] = ['127.0.0.1', '192.0.2.8']
    for (const [address, localAddress] of [
      [there, there],
      [there, here],
      [here, there],
    ] as const) {
      const elsewhere = { ...silent, peer: { ...silent.peer, address, localAddress } }
      t.equal(
        await refusal(elsewhere, offline(rules('node', 0))),
        401,
        `${address} ${localAddress}`,
      )
    }
    const impersonating = { ...request('Impersonate-User', 'jane'), peer: silent.peer }
    t.equal(await refusal(impersonating, offline(rules('root', 0))), 403)
  },
)

void t.test('a certificate is remembered as accepted on loopback alone', async (t) => {
  const present = Date.now()
  const certificate = {
    commonName: 'system:node:edge-1',
    organizations: ['system:nodes'],
    validFrom: present - 1_000,
    validTo: present + 60_000,
    fingerprint: 'AA',
  }
  const added: string[] = []
  const noting = {
    ...rules('root'),
    accepted: {
      ...nothingAccepted,
      add: ({ fingerprint }: { readonly fingerprint: string }) => void added.push(fingerprint),
    },
  }
  const from = (address: string, commonName = certificate.commonName): Incoming => ({
    ...request(),
    peer: { ...peer, address, tls: { certificate: { ...certificate, commonName } } },
  })
  t.equal(await refusal(from('192.0.2.9'), noting), 0)
  t.equal(await refusal(from('127.0.0.1', 'system:node:edge-2'), noting), 403)
  t.strictSame(added, [])
  t.equal(await refusal(from('127.0.0.1'), noting), 0)
  t.strictSame(added, ['AA'])
})
