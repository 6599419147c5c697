import { createPrivateKey, X509Certificate } from 'node:crypto'
import { Secret } from '../base/secret.ts'
import { isUsablePair } from '../certificates/usable-pair.ts'
import { parseKubeconfig, type Part } from './kubeconfig.ts'

/** The files of the hub's own credentials, which are read again when they change. */
export type CredentialFiles =
  | { readonly kind: 'kubeconfig'; readonly file: string }
  | {
      readonly kind: 'files'
      readonly certificate?: string | undefined
      readonly key?: string | undefined
      readonly ca?: string | undefined
    }
  /** What the hub obtains from the cluster: a pair and the CA. Neither may be there yet. */
  | { readonly kind: 'bootstrap'; readonly pair: string; readonly ca: string }
  | { readonly kind: 'none' }

/** The kubelet's credentials, where kubeadm and the kubelet's rotation keep them. */
export const kubeletCredentials = {
  kind: 'files',
  certificate: '/var/lib/kubelet/pki/kubelet-client-current.pem',
  key: '/var/lib/kubelet/pki/kubelet-client-current.pem',
  ca: '/etc/kubernetes/pki/ca.crt',
} as const satisfies CredentialFiles

/** The content of the credential files, for TLS. */
export interface Credentials {
  /** PEM: the CAs of the API servers; absent: the system's. */
  readonly ca?: string
  readonly serverName?: string
  /** PEM: the certificate with its chain, and its key. */
  readonly certificate?: { readonly chain: string; readonly key: Secret<string> }
  readonly token?: Secret<string>
  /** The hub has no identity yet, and obtains one: nothing is sent in its name until then. */
  readonly awaited?: true
  /** The file of each part, for messages. */
  readonly from?: { readonly ca?: string; readonly certificate?: string; readonly token?: string }
  /** Every file that was read: if one changes, all are read again. */
  readonly files: readonly string[]
}

/**
 * A credential file is unreadable or invalid. The message has the file's name, never its content.
 */
class UnusableCredentials extends Error {
  readonly code = 'UNUSABLE_CREDENTIALS'
}

/** Reads a file; throws if it cannot. */
export type ReadFile = (path: string) => string

/**
 * Reads the files and checks that certificate and key match. Throws `UnusableCredentials` or
 * `MalformedKubeconfig`: a rotation may be in progress, and the caller should keep its credentials
 * and retry.
 */
export function readCredentials(where: CredentialFiles, readFile: ReadFile): Credentials {
  if (where.kind === 'none') return { files: [] }
  if (where.kind === 'bootstrap') return obtained(where, readFile)
  const files: string[] = []
  const read = (file: string): string => {
    files.push(file)
    return contentOf(file, readFile)
  }
  const found = (part: Part<string | Secret<string>> | undefined): FoundPart | undefined => {
    if (part === undefined) return undefined
    if ('file' in part) return { text: read(part.file), file: part.file }
    const text = typeof part.data === 'string' ? part.data : part.data.reveal()
    return { text, file: where.kind === 'kubeconfig' ? where.file : '' }
  }
  const given =
    where.kind === 'files' ? partsOf(where) : parseKubeconfig(read(where.file), where.file)
  const { serverName } = given
  const ca = found(given.ca)
  const certificate = found(given.clientCertificate)
  const key = found(given.clientKey)
  const token = found(given.token)
  check(ca, certificate, key)
  return {
    files,
    from: {
      ...(ca && { ca: ca.file }),
      ...(certificate && { certificate: certificate.file }),
      ...(token && { token: token.file }),
    },
    ...(ca && { ca: ca.text }),
    ...(serverName !== undefined && { serverName }),
    ...(certificate &&
      key && { certificate: { chain: certificate.text, key: new Secret(key.text) } }),
    ...(token && { token: new Secret(token.text.trim()) }),
  }
}

/** The content of a part, and the file that has it. */
interface FoundPart {
  readonly text: string
  readonly file: string
}

const partsOf = ({ ca, certificate, key }: CredentialFiles & { readonly kind: 'files' }) => ({
  ca: fileAt(ca),
  clientCertificate: fileAt(certificate),
  clientKey: fileAt(key),
  token: undefined,
  serverName: undefined,
})

const fileAt = (file: string | undefined): { readonly file: string } | undefined =>
  file === undefined ? undefined : { file }

/**
 * What the hub has obtained so far. A file that is missing or damaged is as good as none: the hub
 * obtains another.
 */
function obtained(
  { pair, ca }: CredentialFiles & { readonly kind: 'bootstrap' },
  readFile: ReadFile,
): Credentials {
  const files = [pair, ca]
  const read = (where: CredentialFiles): Credentials | undefined => {
    try {
      return readCredentials(where, readFile)
    } catch {
      return undefined
    }
  }
  const all = read({ kind: 'files', certificate: pair, key: pair, ca })
  return all ? { ...all, files } : { ...read({ kind: 'files', ca }), awaited: true, files }
}

export function contentOf(file: string, readFile: ReadFile): string {
  try {
    return readFile(file)
  } catch (cause) {
    throw new UnusableCredentials(`${file} cannot be read: ${reasonOf(cause)}`, { cause })
  }
}

/** The reason of a failed read without the path, which the message has already. */
export function reasonOf(cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  const words: Record<string, string> = {
    ENOENT: 'there is no such file',
    EACCES: 'permission denied',
    EISDIR: 'it is a folder',
  }
  return words[String(code)] ?? (cause instanceof Error ? cause.message : String(cause))
}

/** Throws where the parts are not what they should be, or do not belong together. */
function check(
  ca: FoundPart | undefined,
  certificate: FoundPart | undefined,
  key: FoundPart | undefined,
): void {
  if (ca) certificateIn(ca.text, `the CA of ${ca.file}`)
  if (!certificate && !key) return
  if (!certificate || !key) {
    const { file } = certificate ?? key ?? {}
    throw new UnusableCredentials(`the certificate and the key of ${file} come together`)
  }
  const leaf = certificateIn(certificate.text, `the certificate of ${certificate.file}`)
  if (!leaf.checkPrivateKey(keyIn(key))) {
    const one =
      certificate.file === key.file
        ? `the certificate and the key in ${key.file}`
        : `the certificate in ${certificate.file} and the key in ${key.file}`
    throw new UnusableCredentials(`${one} do not belong together`)
  }
  if (!isUsablePair(certificate.text, key.text))
    throw new UnusableCredentials(`the chain in ${certificate.file} cannot be used for TLS`)
}

function certificateIn(pem: string, what: string): X509Certificate {
  try {
    return new X509Certificate(pem)
  } catch (cause) {
    throw new UnusableCredentials(`${what} is not a certificate in PEM`, { cause })
  }
}

function keyIn({ text, file }: FoundPart): ReturnType<typeof createPrivateKey> {
  try {
    return createPrivateKey(text)
  } catch {
    // Without the cause: a parser's message may quote the key.
    throw new UnusableCredentials(`the key of ${file} is not a private key in PEM`)
  }
}

/** Whether a client certificate, PEM, is that of the node with this name. */
export const isCertificateOf = (nodeName: string, chain: string): boolean =>
  new X509Certificate(chain).subject.split('\n').includes(`CN=system:node:${nodeName}`)
