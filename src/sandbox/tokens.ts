import {
  generateKeyPairSync,
  hash,
  randomBytes,
  randomUUID,
  sign,
  verify,
  type KeyObject,
} from 'node:crypto'
import { now } from '../base/clock.ts'
import type { JsonObject } from '../api/kube/json.ts'
import { listAt, objectAt, textAt, valueAt } from '../api/kube/json-at.ts'
import type { KubeObject } from './object.ts'
import type { User } from './users.ts'

export const issuer = 'https://kubernetes.default.svc'

/** A service account a token speaks for, and the object it lives with. */
export interface TokenBinding {
  readonly account: KubeObject
  readonly audiences: readonly string[]
  readonly expirationSeconds: number
  readonly pod?: { readonly name: string; readonly uid: string }
  readonly node?: { readonly name: string; readonly uid: string }
}

export interface IssuedToken {
  readonly token: string
  readonly expires: number
}

/** Issues bearer tokens and knows them again. */
export class Tokens {
  readonly #privateKey: KeyObject
  readonly #publicKey: KeyObject
  readonly #keyId: string
  readonly #opaque = new Map<string, User>()

  constructor() {
    const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    this.#privateKey = pair.privateKey
    this.#publicKey = pair.publicKey
    const spki = pair.publicKey.export({ type: 'spki', format: 'der' })
    this.#keyId = hash('sha256', spki, 'base64url')
  }

  /** An opaque token for any user, like bootstrap and static tokens. */
  issue(user: User): string {
    const token = randomBytes(24).toString('base64url')
    this.accept(token, user)
    return token
  }

  /** Authenticates this token as a user, whatever it contains. */
  accept(token: string, user: User): void {
    this.#opaque.set(token, user)
  }

  /** Takes a token of `issue` or `accept` back. */
  revoke(token: string): void {
    this.#opaque.delete(token)
  }

  /** A signed token as TokenRequest gives. */
  bind({ account, audiences, expirationSeconds, pod, node }: TokenBinding): IssuedToken {
    const issued = Math.floor(now() / 1000)
    const { name, uid, namespace = '' } = account.metadata
    const claims: JsonObject = {
      aud: audiences.length > 0 ? audiences : [issuer],
      exp: issued + expirationSeconds,
      iat: issued,
      iss: issuer,
      jti: randomUUID(),
      'kubernetes.io': {
        namespace,
        ...(node && { node: { ...node } }),
        ...(pod && { pod: { ...pod } }),
        serviceaccount: { name, uid },
      },
      nbf: issued,
      sub: `system:serviceaccount:${namespace}:${name}`,
    }
    const head = encode({ alg: 'ES256', kid: this.#keyId })
    const signed = `${head}.${encode(claims)}`
    const signature = sign('sha256', Buffer.from(signed), {
      key: this.#privateKey,
      dsaEncoding: 'ieee-p1363',
    })
    return {
      token: `${signed}.${signature.toString('base64url')}`,
      expires: (issued + expirationSeconds) * 1000,
    }
  }

  /** Undefined for tokens that are unknown, forged, expired, or meant for another audience. */
  userOf(token: string, audience = issuer): User | undefined {
    const opaque = this.#opaque.get(token)
    if (opaque) return opaque
    const claims = this.#verified(token)
    if (!claims) return undefined
    const seconds = now() / 1000
    if (Number(claims['exp']) <= seconds || Number(claims['nbf']) > seconds + 60) return undefined
    return listAt(claims, 'aud').includes(audience) ? accountUser(claims) : undefined
  }

  #verified(token: string): JsonObject | undefined {
    const parts = token.split('.')
    const [head = '', body = '', signature = ''] = parts
    if (parts.length !== 3) return undefined
    const key = { key: this.#publicKey, dsaEncoding: 'ieee-p1363' } as const
    const genuine = verify(
      'sha256',
      Buffer.from(`${head}.${body}`),
      key,
      Buffer.from(signature, 'base64url'),
    )
    return genuine
      ? (JSON.parse(Buffer.from(body, 'base64url').toString()) as JsonObject)
      : undefined
  }

  /** The keys to verify `bind`'s tokens with. */
  get keySet(): JsonObject {
    const { kty = '', crv = '', x = '', y = '' } = this.#publicKey.export({ format: 'jwk' })
    return { keys: [{ use: 'sig', kty, kid: this.#keyId, crv, alg: 'ES256', x, y }] }
  }
}

const encode = (value: JsonObject): string =>
  Buffer.from(JSON.stringify(value)).toString('base64url')

function accountUser(claims: JsonObject): User {
  const own = objectAt(claims, 'kubernetes.io')
  const namespace = textAt(own, 'namespace')
  const extra: Record<string, string[]> = {
    'authentication.kubernetes.io/credential-id': [`JTI=${textAt(claims, 'jti')}`],
  }
  for (const kind of ['pod', 'node']) {
    if (valueAt(own, kind) === undefined) continue
    extra[`authentication.kubernetes.io/${kind}-name`] = [textAt(own, kind, 'name')]
    extra[`authentication.kubernetes.io/${kind}-uid`] = [textAt(own, kind, 'uid')]
  }
  return {
    name: textAt(claims, 'sub'),
    uid: textAt(own, 'serviceaccount', 'uid'),
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`],
    extra,
  }
}
