import { hash, X509Certificate } from 'node:crypto'
import { Secret } from '../base/secret.ts'
import { blocksIn } from '../certificates/bundle.ts'
import { contentOf, readCredentials, type Credentials, type ReadFile } from './credentials.ts'
import { attempt } from './settings.ts'
import { matching, orEmpty, type ValueType } from './value.ts'

/** A bootstrap token (kubernetes.io/docs: bootstrap-tokens): its public id, and its secret. */
export interface BootstrapToken {
  readonly id: string
  readonly secret: Secret<string>
}

/** How the hub gets its own client certificate. */
export interface BootstrapConfig {
  readonly token: BootstrapToken | undefined
  /** A kubeconfig with other credentials to begin with. */
  readonly file: string | undefined
  /** `sha256:` and the hash of a CA's public key, in lower case. */
  readonly caHashes: readonly string[]
  /** Whether the hub trusts a CA that only the token vouches for. */
  readonly anyCa: boolean
  /** The file of the given CA; absent: found by the token. */
  readonly ca: string | undefined
}

const tokenFormat = /^([a-z0-9]{6})\.([a-z0-9]{16})$/

/** `undefined` for a text of another format. */
export function parseBootstrapToken(text: string): BootstrapToken | undefined {
  const [, id, secret] = tokenFormat.exec(text) ?? []
  return id !== undefined && secret !== undefined ? { id, secret: new Secret(secret) } : undefined
}

/** The text of a bootstrap token, checked. */
export const bootstrapToken = orEmpty(
  matching(
    'TOKEN',
    tokenFormat,
    'is no bootstrap token, which is 6 and 16 characters of a-z and 0-9: id.secret',
  ),
)

/** A hash of a public key, as kubeadm prints it. */
export const publicKeyHash: ValueType<string> = {
  placeholder: 'sha256:HEX',
  parse: (text) =>
    /^sha256:[0-9a-f]{64}$/i.test(text)
      ? { value: text.toLowerCase() }
      : { wrong: 'is no hash of a public key: sha256: and 64 hexadecimal digits' },
}

/** The certificates of a PEM text, one by one; none if any of them cannot be read. */
export function certificatesIn(pem: string): readonly string[] {
  try {
    const all = blocksIn(pem)
    // Node decodes the key at its first use, and only then finds that it is unreadable.
    for (const each of all) void new X509Certificate(each).publicKey
    return all
  } catch {
    return []
  }
}

/** The hash of a certificate's public key, as `--discovery-token-ca-cert-hash` has it. */
export const hashOfPublicKey = (pem: string): string =>
  `sha256:${hash('sha256', new X509Certificate(pem).publicKey.export({ type: 'spki', format: 'der' }))}`

/** The certificates of a CA bundle whose public keys have one of these hashes. */
export const pinnedCertificates = (pem: string, hashes: readonly string[]): readonly string[] =>
  certificatesIn(pem).filter((each) => hashes.includes(hashOfPublicKey(each)))

/** Throws where a given CA has none of the public keys that are pinned. */
function checkPins(ca: string, where: string, hashes: readonly string[]): void {
  if (hashes.length === 0 || pinnedCertificates(ca, hashes).length > 0) return
  const has = certificatesIn(ca).map(hashOfPublicKey)
  throw new UnusableBootstrap(
    `${where} has none of the public keys of --discovery-token-ca-cert-hash, but ${has.join(', ') || 'no certificate'}`,
  )
}

/** The file of the bootstrap kubeconfig cannot be used, or the CA is not the pinned one. */
class UnusableBootstrap extends Error {
  readonly code = 'UNUSABLE_BOOTSTRAP'
}

/**
 * Mistakes in how the hub is to obtain its credentials. A missing bootstrap file is no mistake
 * where the hub has obtained its certificate (`own`) already.
 */
export function bootstrapMistakes(
  config: BootstrapConfig,
  own: Credentials,
  readFile: ReadFile,
): string[] {
  const mistakes: string[] = []
  const { token, file, caHashes, anyCa, ca } = config
  const findsCa = anyCa || caHashes.length > 0
  attempt(mistakes, '--upstream-ca', () => {
    if (ca !== undefined) checkPins(contentOf(ca, readFile), ca, caHashes)
  })
  if (file !== undefined && own.certificate === undefined) {
    attempt(mistakes, '--bootstrap-file', () => {
      const credentials = readBootstrapFile(file, config, readFile)
      const canFind =
        findsCa && parseBootstrapToken(credentials.token?.reveal() ?? '') !== undefined
      if (credentials.ca === undefined && ca === undefined && !canFind)
        throw new UnusableBootstrap(`${file} has no CA: put it there, or give --upstream-ca`)
    })
  }
  if (token !== undefined && file === undefined && ca === undefined && !findsCa)
    mistakes.push(unknownCa)
  return mistakes
}

const unknownCa =
  "--join-token: the cluster's CA is not known: give --discovery-token-ca-cert-hash, which kubeadm token create --print-join-command prints, or the CA's file with --upstream-ca, or, where the network between the node and its API servers is trusted, --discovery-token-unsafe-skip-ca-verification"

/**
 * The credentials and the CA of the bootstrap kubeconfig. Throws where it cannot be used, or its CA
 * is not the pinned one.
 */
export function readBootstrapFile(
  file: string,
  { caHashes }: Pick<BootstrapConfig, 'caHashes'>,
  readFile: ReadFile,
): Credentials {
  const credentials = readCredentials({ kind: 'kubeconfig', file }, readFile)
  if (credentials.token === undefined && credentials.certificate === undefined)
    throw new UnusableBootstrap(`${file} has neither a token nor a client certificate`)
  if (credentials.ca !== undefined) checkPins(credentials.ca, file, caHashes)
  return credentials
}
