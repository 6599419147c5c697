import { dirname, resolve } from 'node:path'
import { parse, type YAMLParseError } from 'yaml'
import { isObject, type Json, type JsonObject } from '../api/kube/json.ts'
import { kubernetesYaml } from '../api/kube/yaml.ts'
import { Secret } from '../base/secret.ts'

/** A part of a kubeconfig: inline data, or a file. */
export type Part<T> = { readonly data: T } | { readonly file: string }

/** The cluster and user of a kubeconfig's current context. Paths are absolute. */
export interface Kubeconfig {
  readonly server: URL
  /** The expected name in the server's certificate, if it is not the host's. */
  readonly serverName: string | undefined
  readonly ca: Part<string> | undefined
  readonly clientCertificate: Part<string> | undefined
  readonly clientKey: Part<Secret<string>> | undefined
  readonly token: Part<Secret<string>> | undefined
}

/** An unusable kubeconfig; the message has the reason without any secret. */
class MalformedKubeconfig extends Error {
  readonly code = 'MALFORMED_KUBECONFIG'
}

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
  const part = (of: JsonObject, name: string): Part<string> | undefined =>
    partOf(of, name, dirname(path))
  const ca = part(cluster, 'certificate-authority')
  const clientCertificate = part(user, 'client-certificate')
  const clientKey = hidden(part(user, 'client-key'))
  if ((clientCertificate === undefined) !== (clientKey === undefined)) {
    throw new MalformedKubeconfig('a client certificate and its key must be given together')
  }
  return {
    server: serverOf(cluster),
    serverName: text(cluster, 'tls-server-name'),
    ca,
    clientCertificate,
    clientKey,
    token: tokenOf(user, dirname(path)),
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
  const [only] = clusters as readonly Json[]
  const cluster = mapping(mapping(only, 'its cluster')['cluster'], 'its cluster')
  const ca = partOf(cluster, 'certificate-authority', '/')
  return ca && 'data' in ca ? ca.data : undefined
}

function parsed(content: string): Json {
  try {
    // Without warnings, which the package prints, and which quote lines as well.
    return parse(content, kubernetesYaml) as Json
  } catch (cause) {
    // The parser's message quotes the line, which may be a token; its position and code are safe.
    const { code, linePos } = cause as Partial<YAMLParseError>
    const [at] = linePos ?? []
    const where = at ? `: line ${at.line}, column ${at.col}` : ''
    const what = typeof code === 'string' ? ` (${code})` : ''
    throw new MalformedKubeconfig(`it is neither YAML nor JSON${where}${what}`, { cause })
  }
}

function currentContext(document: JsonObject): JsonObject {
  const name = text(document, 'current-context')
  const contexts = document['contexts']
  if (name === undefined && Array.isArray(contexts) && contexts.length === 1) {
    return mapping(mapping(contexts[0], 'its context')['context'], 'its context')
  }
  if (name === undefined) throw new MalformedKubeconfig('it has no current-context')
  return entry(document, 'contexts', 'context', name)
}

/** The entry called `name` in one of the kubeconfig's lists. */
function entry(
  document: JsonObject,
  list: string,
  kind: string,
  name: string | undefined,
): JsonObject {
  if (name === undefined) {
    if (kind === 'user') return {} // a context without a user has no credentials
    throw new MalformedKubeconfig(`its context names no ${kind}`)
  }
  const entries = document[list]
  const found = Array.isArray(entries)
    ? entries.find((candidate) => isObject(candidate) && candidate['name'] === name)
    : undefined
  if (!isObject(found)) throw new MalformedKubeconfig(`it has no ${kind} named ${name}`)
  return mapping(found[kind] ?? {}, `its ${kind} ${name}`)
}

function refuseUnsupported(cluster: JsonObject, user: JsonObject): void {
  const used: string[] = unsupported.filter((name) => user[name] !== undefined)
  if (cluster['insecure-skip-tls-verify'] === true) used.push('insecure-skip-tls-verify')
  if (cluster['proxy-url'] !== undefined) used.push('proxy-url')
  if (used.length > 0)
    throw new MalformedKubeconfig(`it uses ${used.join(', ')}, which the hub does not`)
}

function serverOf(cluster: JsonObject): URL {
  const server = URL.parse(text(cluster, 'server') ?? '')
  if (server === null || !/^https?:$/.test(server.protocol)) {
    throw new MalformedKubeconfig('its cluster has no server address')
  }
  return server
}

function partOf(of: JsonObject, name: string, folder: string): Part<string> | undefined {
  const data = text(of, `${name}-data`)
  if (data !== undefined) return { data: Buffer.from(data, 'base64').toString('utf8') }
  const file = text(of, name)
  return file === undefined ? undefined : { file: resolve(folder, file) }
}

/** A token file takes precedence over a token, as in client-go: the file is renewed. */
function tokenOf(user: JsonObject, folder: string): Part<Secret<string>> | undefined {
  const file = text(user, 'tokenFile')
  if (file !== undefined) return { file: resolve(folder, file) }
  const token = text(user, 'token')
  return token === undefined ? undefined : { data: new Secret(token) }
}

const hidden = (part: Part<string> | undefined): Part<Secret<string>> | undefined =>
  part && 'data' in part ? { data: new Secret(part.data) } : part

function mapping(value: Json | undefined, what: string): JsonObject {
  if (!isObject(value)) throw new MalformedKubeconfig(`${what} is not a mapping`)
  return value
}

/** A text at `key`; an empty one counts as absent, as in client-go. */
function text(of: JsonObject, key: string): string | undefined {
  const value = of[key]
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value !== 'string') throw new MalformedKubeconfig(`its ${key} is not a text`)
  return value
}
