import { readFileSync } from 'node:fs'
import { stringify } from 'yaml'
import { isSignedWith } from '../../../src/certificates/detached-signature.ts'
import {
  bootstrapToken,
  certificatesIn,
  parseBootstrapToken,
  pinnedCertificates,
} from '../../../src/config/bootstrap.ts'
import { clusterCaIn } from '../../../src/config/kubeconfig.ts'
import { clusterInfoOf, detachedSignature } from '../../kit/joinable.ts'
import { mutated } from '../mutate.ts'
import { Finding, pure, type Opening } from '../target.ts'

const token = { id: 'abcdef', secret: '0123456789abcdef' }
const tokenText = `${token.id}.${token.secret}`
const ca = readFileSync('test/fixtures/credentials/ca.crt', 'utf8')
const json = clusterInfoOf(ca)
const texts = [
  json,
  stringify(JSON.parse(json)),
  'a: &a [*a, *a]',
  '%YAML 1.1\n---\nclusters: !!set {}',
]
const kubeconfigs = texts.map((text) => Buffer.from(text))

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const right = detachedSignature(json, tokenText)
const [, , mac = ''] = right.split('.')
const signatures = [
  right,
  detachedSignature(json, `${token.id}.fedcba9876543210`),
  `${part({ alg: 'none', kid: token.id })}..`,
  `${part({ alg: 'HS256', kid: 'zzzzzz' })}..${mac}`,
  `${part({ alg: 'HS256', kid: token.id, b64: false, crit: ['b64'] })}..${mac}`,
].map((text) => Buffer.from(text))

const tokens = [tokenText, 'abcdef', 'ABCDEF.0123456789ABCDEF', `${tokenText}\n`].map((text) =>
  Buffer.from(text),
)

/** What is read of a cluster before it is believed: by anybody who is on the way. */
export const bootstrapTargets: readonly Opening[] = [
  pure('bootstrap-token', (random) => {
    const input = mutated(random, random.of(tokens), tokens)
    const text = input.toString('latin1')
    const parsed = parseBootstrapToken(text)
    const isTaken = 'value' in bootstrapToken.parse(text) && text !== ''
    if (isTaken !== (parsed !== undefined))
      throw new Finding('two readers of a token differ', input)
    if (parsed && `${parsed.id}.${parsed.secret.reveal()}` !== text)
      throw new Finding('a token is not all of its text', input)
    return parsed ? 'taken' : 'refused'
  }),
  pure('bootstrap-cluster-info', (random) => {
    const input = mutated(random, random.of(kubeconfigs), kubeconfigs)
    let found: string | undefined
    try {
      found = clusterCaIn(input.toString())
    } catch (refusal) {
      if ((refusal as { code?: unknown }).code === 'MALFORMED_KUBECONFIG') return 'refused'
      throw new Finding('a cluster-info is refused by accident', input, refusal)
    }
    if (found === undefined) return 'refused'
    if (pinnedCertificates(found, ['sha256:00']).length > 0)
      throw new Finding('a certificate is pinned that is not', input)
    return certificatesIn(found).length > 0 ? 'taken' : 'refused'
  }),
  pure('bootstrap-signature', async (random) => {
    const signature = mutated(random, random.of(signatures), signatures)
    const text = random.once(2) ? json : mutated(random, Buffer.from(json), kubeconfigs).toString()
    const given = signature.toString('latin1')
    const isSigned = await isSignedWith(token, text, given)
    // Bits after the last byte of base64 are not of the signature.
    const isRight =
      text === json &&
      Buffer.from(given.split('.')[2] ?? '', 'base64url').toString('hex') ===
        Buffer.from(mac, 'base64url').toString('hex') &&
      given.startsWith(right.split('..')[0] ?? '')
    if (isSigned && !isRight) throw new Finding('a signature is believed that is none', signature)
    if (given === right && text === json && !isSigned)
      throw new Finding('a signature is not believed', signature)
    return isSigned ? 'taken' : 'refused'
  }),
]
