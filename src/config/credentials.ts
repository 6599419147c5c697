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
  const files: string[] = []
  const read = (file: string): string => {
    files.push(file)
    return contentOf(file, readFile)
  }
  const partText = (part: Part<string> | undefined): string | undefined =>
    part && ('data' in part ? part.data : read(part.file))
  const partSecret = (part: Part<Secret<string>> | undefined): Secret<string> | undefined =>
    part && ('data' in part ? part.data : new Secret(read(part.file).trim()))
  if (where.kind === 'none') return { files }
  if (where.kind === 'bootstrap') return obtained(where, readFile)
  if (where.kind === 'files') {
    const ca = where.ca === undefined ? undefined : read(where.ca)
    const certificate = where.certificate === undefined ? undefined : read(where.certificate)
    const key = where.key === undefined ? undefined : new Secret(read(where.key))
    return checked({ ca, certificate, key, files }, where)
  }
  const config = parseKubeconfig(read(where.file), where.file)
  const token = partSecret(config.token)
  const certified = checked(
    {
      ca: partText(config.ca),
      certificate: partText(config.clientCertificate),
      key: partSecret(config.clientKey),
      files,
    },
    {
      ca: fileOfPart(config.ca, where.file),
      certificate: fileOfPart(config.clientCertificate, where.file),
      key: fileOfPart(config.clientKey, where.file),
    },
  )
  return {
    ...certified,
    from: {
      ...certified.from,
      ...(token && { token: fileOfPart(config.token, where.file) }),
    },
    ...(config.serverName !== undefined && { serverName: config.serverName }),
    ...(token && { token }),
  }
}

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

/** The file that holds a part of a kubeconfig. */
const fileOfPart = (part: Part<unknown> | undefined, kubeconfig: string): string =>
  part && 'file' in part ? part.file : kubeconfig

export function contentOf(file: string, readFile: ReadFile): string {
  try {
    return readFile(file)
  } catch (cause) {
    throw new UnusableCredentials(`${file} cannot be read: ${reasonOf(cause)}`, { cause })
  }
}

/** The reason of a failed read without the path, which the message has already. */
function reasonOf(cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  const words: Record<string, string> = {
    ENOENT: 'there is no such file',
    EACCES: 'permission denied',
    EISDIR: 'it is a folder',
  }
  return words[String(code)] ?? (cause instanceof Error ? cause.message : String(cause))
}

interface Unchecked {
  readonly ca: string | undefined
  readonly certificate: string | undefined
  readonly key: Secret<string> | undefined
  readonly files: readonly string[]
}

/** The file of each part, if any. */
type PartFiles = Omit<CredentialFiles & { readonly kind: 'files' }, 'kind'>

function checked({ ca, certificate, key, files }: Unchecked, places: PartFiles): Credentials {
  const { ca: caFile = '', certificate: certificateFile = '', key: keyFile = '' } = places
  if (ca !== undefined) certificateIn(ca, `the CA of ${caFile}`)
  const authorities = ca === undefined ? {} : { ca, from: { ca: caFile } }
  if (certificate === undefined && key === undefined) return { ...authorities, files }
  if (certificate === undefined || key === undefined) {
    const file = certificateFile || keyFile
    throw new UnusableCredentials(`the certificate and the key of ${file} come together`)
  }
  const leaf = certificateIn(certificate, `the certificate of ${certificateFile}`)
  if (!leaf.checkPrivateKey(keyIn(key, keyFile))) {
    const one =
      certificateFile === keyFile
        ? `the certificate and the key in ${keyFile}`
        : `the certificate in ${certificateFile} and the key in ${keyFile}`
    throw new UnusableCredentials(`${one} do not belong together`)
  }
  if (!isUsablePair(certificate, key.reveal()))
    throw new UnusableCredentials(`the chain in ${certificateFile} cannot be used for TLS`)
  return {
    ...authorities,
    certificate: { chain: certificate, key },
    from: { ...authorities.from, certificate: certificateFile },
    files,
  }
}

function certificateIn(pem: string, what: string): X509Certificate {
  try {
    return new X509Certificate(pem)
  } catch (cause) {
    throw new UnusableCredentials(`${what} is not a certificate in PEM`, { cause })
  }
}

function keyIn(pem: Secret<string>, name: string): ReturnType<typeof createPrivateKey> {
  try {
    return createPrivateKey(pem.reveal())
  } catch {
    // Without the cause: a parser's message may quote the key.
    throw new UnusableCredentials(`the key of ${name} is not a private key in PEM`)
  }
}

/** Whether a client certificate, PEM, is that of the node with this name. */
export const isCertificateOf = (nodeName: string, chain: string): boolean =>
  new X509Certificate(chain).subject.split('\n').includes(`CN=system:node:${nodeName}`)
