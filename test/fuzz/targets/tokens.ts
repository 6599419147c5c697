import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cursorOf } from '../../../src/api/codec/cursor.ts'
import { MalformedBody } from '../../../src/api/codec/malformed-body.ts'
import { readObject } from '../../../src/api/codec/object.ts'
import { tokenIn, tokenSpec } from '../../../src/api/codec/token-request.ts'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { presentedCredential } from '../../../src/hub/identity/claims.ts'
import { ClusterKeys, type PublishedKeys } from '../../../src/hub/identity/cluster-keys.ts'
import { parseWebToken } from '../../../src/hub/identity/web-token.ts'
import { toProtobuf } from '../../../src/sandbox/protobuf.ts'
import { issuer, Tokens } from '../../../src/sandbox/tokens.ts'
import { exchangeOf } from '../../kit/exchange.ts'
import { mutated } from '../mutate.ts'
import type { Random } from '../random.ts'
import { Finding, pure, type Opening, type Outcome } from '../target.ts'

const accountOf = (name: string) => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: {
    name,
    namespace: 'default',
    uid: `uid-of-${name}`,
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
  },
})

/**
 * Tokens of the cluster with bytes changed, of their text or of one decoded part: a signature is
 * genuine only of a token that says, byte for byte, what the cluster has signed.
 */
const webTokens: Opening = {
  name: 'token-web',
  async open() {
    const folder = mkdtempSync(join(tmpdir(), 'nodehub-fuzz-'))
    const tokens = new Tokens()
    const keys = new ClusterKeys(join(folder, 'keys.json'))
    const { keySet } = tokens as unknown as { readonly keySet: Pick<PublishedKeys, 'keys'> }
    await keys.learn({ issuer, ...keySet })
    const texts = ['reader', 'writer'].map(
      (name) =>
        tokens.bind({ account: accountOf(name), audiences: [], expirationSeconds: 60 }).token,
    )
    const whole = texts.map((text) => Buffer.from(text))
    const signed = new Set(texts.map(withoutSignature))
    const round = async (random: Random): Promise<Outcome> => {
      const input = random.once(2)
        ? mutated(random, random.of(whole), whole)
        : Buffer.from(withPartChanged(random, random.of(texts)))
      const token = parseWebToken(input.toString('latin1'))
      if (token === undefined || (await keys.signature(token)) !== 'genuine') return 'refused'
      if (!signed.has(withoutSignature(token.text)))
        throw new Finding('a forged token is genuine', input)
      return 'taken'
    }
    const close = async (): Promise<void> => {
      await keys[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true })
    }
    return { name: 'token-web', round, [Symbol.asyncDispose]: close }
  },
}

const withoutSignature = (token: string): string => token.slice(0, token.lastIndexOf('.'))

/** The token with bytes changed in its header, its claims or its signature, encoded again. */
function withPartChanged(random: Random, token: string): string {
  const parts = token.split('.')
  const at = random.below(parts.length)
  const decoded = parts.map((part) => Buffer.from(part, 'base64url'))
  const changed = mutated(random, decoded[at] ?? Buffer.of(), decoded)
  return parts.with(at, changed.toString('base64url')).join('.')
}

const authorizations = ['Bearer abc', 'bearer a.b-c_d~e+f/g==', 'Basic eDp5', 'Bearer a b'].map(
  (text) => Buffer.from(text),
)
const offered = Buffer.from(
  `v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.${Buffer.from('abc').toString('base64url')}`,
)

/** Fields that show a token: what is read as one has only characters of a token. */
const bearers: Opening = pure('token-bearer', (random) => {
  const inProtocol = random.once(2)
  const input = mutated(random, inProtocol ? offered : random.of(authorizations), authorizations)
  const name = inProtocol ? 'Sec-WebSocket-Protocol' : 'Authorization'
  const headers = new HeaderList([name, input.toString('latin1')])
  const presented = presentedCredential({ ...exchangeOf('/api'), headers, upgrade: inProtocol })
  if (presented?.token === undefined) return 'refused'
  if (!/^[\w.~+/-]+=*$/.test(presented.token)) throw new Finding('this is no token', input)
  return 'taken'
})

const gvk = { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' }
const request = {
  apiVersion: 'authentication.k8s.io/v1',
  kind: 'TokenRequest',
  metadata: { name: 'reader', namespace: 'default' },
  spec: {
    audiences: ['a', 'b'],
    expirationSeconds: 3607,
    boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'p', uid: 'u' },
  },
  status: { token: 'a.b.c', expirationTimestamp: '2026-01-01T00:00:00Z' },
} satisfies JsonObject

/** TokenRequests, as kubelets send them and API servers answer them: read, or refused. */
const requests = (['json', 'protobuf'] as const).map((encoding) => {
  const body =
    encoding === 'json'
      ? Buffer.from(JSON.stringify(request))
      : Buffer.from(toProtobuf(gvk, request))
  return pure(`token-request-${encoding}`, (random) => {
    const input = mutated(random, body, [body])
    try {
      const read = readObject(encoding, 'object', input)
      cursorOf(encoding, read.gvk, read.object)
      const spec = tokenSpec({ encoding, ...read })
      const token = tokenIn({ encoding, ...read })
      if (spec === undefined) return 'refused'
      const texts = [token, ...spec.audiences, ...Object.values(spec.boundObject ?? {})]
      if (texts.some((each) => typeof each !== 'string')) throw new Finding('no text', input)
      return 'taken'
    } catch (cause) {
      if (cause instanceof MalformedBody) return 'refused'
      throw cause
    }
  })
})

/** What says who a caller is. */
export const tokenTargets: readonly Opening[] = [webTokens, bearers, ...requests]
