import { createHmac, generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import {
  ClusterKeys,
  type PublishedKey,
  type Signature,
} from '../../../src/hub/identity/cluster-keys.ts'
import { parseWebToken } from '../../../src/hub/identity/web-token.ts'
import { rootFolder } from '../../kit/root-folder.ts'

const issuer = 'https://kubernetes.default.svc'
const claims = { iss: issuer, aud: [issuer], sub: 'system:serviceaccount:default:reader' }

interface KeyPair {
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
}

interface SigningKey extends KeyPair {
  readonly alg: string
  readonly hash: string
}

const rsa = (bits: number): KeyPair => generateKeyPairSync('rsa', { modulusLength: bits })
const ec = (namedCurve: string): KeyPair => generateKeyPairSync('ec', { namedCurve })

/** By their ids, the keys that API servers may sign with. */
const signers: Readonly<Record<string, SigningKey>> = {
  rsa: { alg: 'RS256', hash: 'sha256', ...rsa(2048) },
  p256: { alg: 'ES256', hash: 'sha256', ...ec('P-256') },
  p384: { alg: 'ES384', hash: 'sha384', ...ec('P-384') },
  p521: { alg: 'ES512', hash: 'sha512', ...ec('P-521') },
}

const publishedAs = (kid: string, { alg, publicKey }: SigningKey): PublishedKey => ({
  ...publicKey.export({ format: 'jwk' }),
  kid,
  alg,
  use: 'sig',
})

const encoded = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url')

/** A token with this head, signed with the key whatever the head says. */
function token(head: object, { hash, privateKey }: SigningKey, said: object = claims): string {
  const signed = `${encoded(head)}.${encoded(said)}`
  const key = { key: privateKey, dsaEncoding: 'ieee-p1363' } as const
  return `${signed}.${sign(hash, Buffer.from(signed), key).toString('base64url')}`
}

async function keysOf(
  t: Parameters<typeof rootFolder>[0],
  published: readonly PublishedKey[] = Object.entries(signers).map(([kid, key]) =>
    publishedAs(kid, key),
  ),
): Promise<(text: string) => Promise<Signature | undefined>> {
  const keys = new ClusterKeys(join(rootFolder(t), 'keys.json'))
  await keys.learn({ issuer, keys: published })
  return async (text) => {
    const parsed = parseWebToken(text)
    return parsed && keys.signature(parsed)
  }
}

void t.test('a token is genuine by each algorithm that API servers sign with', async (t) => {
  const signature = await keysOf(t)
  for (const [kid, signer] of Object.entries(signers)) {
    const { alg } = signer
    const genuine = token({ alg, kid }, signer)
    t.equal(await signature(genuine), 'genuine', alg)
    const [head, , signed] = genuine.split('.')
    const other = encoded({ ...claims, sub: 'system:serviceaccount:default:writer' })
    t.equal(await signature([head, other, signed].join('.')), 'forged', `${alg}, other claims`)
    t.equal(await signature(`${genuine.slice(0, -8)}AAAAAAAA`), 'forged', `${alg}, cut`)
  }
})

void t.test('a key without an algorithm has that of its type', async (t) => {
  const bare = Object.entries(signers).map(([kid, key]) => {
    const { alg: _alg, ...rest } = publishedAs(kid, key)
    return rest
  })
  const signature = await keysOf(t, bare)
  for (const [kid, signer] of Object.entries(signers))
    t.equal(await signature(token({ alg: signer.alg, kid }, signer)), 'genuine', signer.alg)
})

void t.test('a key is used for its own algorithm alone', async (t) => {
  const signature = await keysOf(t)
  for (const [kid, signer] of Object.entries(signers)) {
    for (const alg of ['RS256', 'ES256', 'ES384', 'ES512', 'RS384', 'PS256', 'EdDSA', 'none', '']) {
      if (alg === signer.alg) continue
      t.equal(await signature(token({ alg, kid }, signer)), 'forged', `${alg} with ${kid}`)
    }
    const signed = `${encoded({ alg: 'HS256', kid })}.${encoded(claims)}`
    for (const secret of [
      signer.publicKey.export({ format: 'pem', type: 'spki' }),
      signer.publicKey.export({ format: 'der', type: 'spki' }),
    ]) {
      const mac = createHmac('sha256', secret).update(signed).digest('base64url')
      t.equal(await signature(`${signed}.${mac}`), 'forged', `the public key ${kid} as a secret`)
    }
    t.equal(await signature(`${encoded({ alg: 'none', kid })}.${encoded(claims)}.`), 'forged')
    const critical = { alg: signer.alg, kid, crit: ['exp'], exp: 1 }
    t.equal(await signature(token(critical, signer)), 'unknown', 'what is not understood')
    const own = { alg: signer.alg, kid: 'own', jwk: signer.publicKey.export({ format: 'jwk' }) }
    t.equal(await signature(token(own, signer)), 'unknown', 'a token does not bring its key')
  }
})

void t.test('a token of another key, issuer or audience is not known', async (t) => {
  const signature = await keysOf(t)
  const { rsa: signer, p256 } = signers
  if (!signer || !p256) throw new Error('there are both')
  const head = { alg: signer.alg, kid: 'rsa' }
  t.equal(await signature(token({ ...head, kid: 'another' }, signer)), 'unknown')
  t.equal(await signature(token({ alg: signer.alg }, signer)), 'unknown')
  t.equal(await signature(token(head, signer, { ...claims, iss: 'https://other' })), 'unknown')
  t.equal(await signature(token(head, signer, { ...claims, aud: ['vault'] })), 'unknown')
  t.equal(await signature(token(head, { ...signer, ...rsa(2048) })), 'forged')
  t.equal(
    await signature(token({ alg: 'ES256', kid: 'p256' }, { ...p256, ...ec('P-256') })),
    'forged',
  )
})

void t.test('a short key verifies nothing, and proves no forgery', async (t) => {
  const short = { alg: 'RS256', hash: 'sha256', ...rsa(1024) }
  const signature = await keysOf(t, [publishedAs('short', short)])
  t.equal(await signature(token({ alg: 'RS256', kid: 'short' }, short)), 'unknown')
})
