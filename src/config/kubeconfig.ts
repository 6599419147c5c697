import { dirname, resolve } from 'node:path'
import { parse, type YAMLParseError } from 'yaml'
import { kubernetesYaml } from '../api/kube/yaml.ts'
import { Secret } from '../base/secret.ts'

/** A part of a kubeconfig: inline data, or a file. */
export type Part<T> = { readonly data: T } | { readonly file: string }

/** The cluster and user of a kubeconfig's current context. Paths are absolute. */
export interface Kubeconfig {
  readonly server: URL
  /** The expected name in the server's certificate, if it is not the host's. */
  readonly serverName?: string
  readonly ca?: Part<string>
  readonly clientCertificate?: Part<string>
  readonly clientKey?: Part<Secret<string>>
  readonly token?: Part<Secret<string>>
}

/** An unusable kubeconfig; the message has the reason without any secret. */
class MalformedKubeconfig extends Error {
  readonly code = 'MALFORMED_KUBECONFIG'
}

type Mapping = Readonly<Record<string, unknown>>

/** Ways of client-go to authenticate that the hub does not support. */
const unsupported = ['exec', 'auth-provider', 'username', 'password', 'as'] as const

/**
 * Parses the current context (or the only one) of a kubeconfig in YAML or JSON. Relative paths
 * start at `path`, the kubeconfig's own. Throws `MalformedKubeconfig`.
 */
export function parseKubeconfig(content: string, path: string): Kubeconfig {
  const document = mapping(parsed(content), 'the kubeconfig')
  const context = currentContext(document)
  const cluster = entry(document, 'clusters', 'cluster', text(context, 'cluster'))
  const user = entry(document, 'users', 'user', text(context, 'user'))
  refuseUnsupported(cluster, user)
  const part = (of: Mapping, name: string): Part<string> | undefined =>
    partOf(of, name, dirname(path))
  const ca = part(cluster, 'certificate-authority')
  const clientCertificate = part(user, 'client-certificate')
  const clientKey = hidden(part(user, 'client-key'))
  const token = tokenOf(user, dirname(path))
  const serverName = text(cluster, 'tls-server-name')
  if ((clientCertificate === undefined) !== (clientKey === undefined)) {
    throw new MalformedKubeconfig('a client certificate and its key must be given together')
  }
  return {
    server: serverOf(cluster),
    ...(serverName !== undefined && { serverName }),
    ...(ca && { ca }),
    ...(clientCertificate && { clientCertificate }),
    ...(clientKey && { clientKey }),
    ...(token && { token }),
  }
}

/**
 * The CA in a kubeconfig with one cluster, which may have neither users nor contexts, as in the
 * ConfigMap cluster-info. Throws `MalformedKubeconfig`.
 */
export function clusterCaIn(content: string): string | undefined {
  const { clusters } = mapping(parsed(content), 'the kubeconfig')
  if (!Array.isArray(clusters) || clusters.length !== 1)
    throw new MalformedKubeconfig('it has no cluster, or several')
  const [only] = clusters as readonly unknown[]
  const cluster = mapping(mapping(only, 'its cluster')['cluster'], 'its cluster')
  const ca = partOf(cluster, 'certificate-authority', '/')
  return ca && 'data' in ca ? ca.data : undefined
}

function parsed(content: string): unknown {
  try {
    // Without warnings, which the package prints, and which quote lines as well.
    return parse(content, kubernetesYaml)
  } catch (cause) {
    // The parser's message quotes the line, which may be a token; its position and code are safe.
    const { code, linePos } = cause as Partial<YAMLParseError>
    const [at] = linePos ?? []
    const where = at ? `: line ${at.line}, column ${at.col}` : ''
    const what = typeof code === 'string' ? ` (${code})` : ''
    throw new MalformedKubeconfig(`it is neither YAML nor JSON${where}${what}`, { cause })
  }
}

function currentContext(document: Mapping): Mapping {
  const name = text(document, 'current-context')
  const contexts = document['contexts']
  if (name === undefined && Array.isArray(contexts) && contexts.length === 1) {
    return mapping(mapping(contexts[0], 'its context')['context'], 'its context')
  }
  if (name === undefined) throw new MalformedKubeconfig('it has no current-context')
  return entry(document, 'contexts', 'context', name)
}

/** The entry called `name` in one of the kubeconfig's lists. */
function entry(document: Mapping, list: string, kind: string, name: string | undefined): Mapping {
  if (name === undefined) {
    if (kind === 'user') return {} // a context without a user has no credentials
    throw new MalformedKubeconfig(`its context names no ${kind}`)
  }
  const entries = document[list]
  const found: unknown = Array.isArray(entries)
    ? entries.find((candidate) => isMapping(candidate) && candidate['name'] === name)
    : undefined
  if (!isMapping(found)) throw new MalformedKubeconfig(`it has no ${kind} named ${name}`)
  return mapping(found[kind] ?? {}, `its ${kind} ${name}`)
}

function refuseUnsupported(cluster: Mapping, user: Mapping): void {
  const used: string[] = unsupported.filter((name) => user[name] !== undefined)
  if (cluster['insecure-skip-tls-verify'] === true) used.push('insecure-skip-tls-verify')
  if (cluster['proxy-url'] !== undefined) used.push('proxy-url')
  if (used.length > 0)
    throw new MalformedKubeconfig(`it uses ${used.join(', ')}, which the hub does not`)
}

function serverOf(cluster: Mapping): URL {
  const server = URL.parse(text(cluster, 'server') ?? '')
  if (server === null || !/^https?:$/.test(server.protocol)) {
    throw new MalformedKubeconfig('its cluster has no server address')
  }
  return server
}

function partOf(of: Mapping, name: string, folder: string): Part<string> | undefined {
  const data = text(of, `${name}-data`)
  if (data !== undefined) return { data: Buffer.from(data, 'base64').toString('utf8') }
  const file = text(of, name)
  return file === undefined ? undefined : { file: resolve(folder, file) }
}

/** A token file takes precedence over a token, as in client-go: the file is renewed. */
function tokenOf(user: Mapping, folder: string): Part<Secret<string>> | undefined {
  const file = text(user, 'tokenFile')
  if (file !== undefined) return { file: resolve(folder, file) }
  const token = text(user, 'token')
  return token === undefined ? undefined : { data: new Secret(token) }
}

const hidden = (part: Part<string> | undefined): Part<Secret<string>> | undefined =>
  part && 'data' in part ? { data: new Secret(part.data) } : part

const isMapping = (value: unknown): value is Mapping =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function mapping(value: unknown, what: string): Mapping {
  if (!isMapping(value)) throw new MalformedKubeconfig(`${what} is not a mapping`)
  return value
}

/** A text at `key`; an empty one counts as absent, as in client-go. */
function text(of: Mapping, key: string): string | undefined {
  const value = of[key]
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value !== 'string') throw new MalformedKubeconfig(`its ${key} is not a text`)
  return value
}
