import type { RequestOptions } from 'node:https'
import { isDeepStrictEqual } from 'node:util'
import type { KubeConfig } from '@kubernetes/client-node'
import { Agent } from 'undici'
import { elapsed } from '../../base/clock.ts'
import type { ClusterAccess } from '../../config/cluster-config.ts'
import { didYouMean } from '../../config/suggestion.ts'

/** The connections and credentials of requests to the API server. */
export interface Transport {
  readonly agent: Agent
  readonly headers: Readonly<Record<string, string>>
}

/** Files and tokens are read again at most this often, as client-go does. */
const refreshMs = 60_000

/** For the most `--workers`, and with them watches, lookups of reviews and the Lease's renewals. */
const mostConnections = 320

/** TCP's own probes, below the time after which NATs forget an idle connection. */
const keepAliveProbeMs = 30_000

/**
 * The API server's address and credentials, from a kubeconfig (all that @kubernetes/client-node
 * reads, exec plugins included) or from the service account of a pod. Connections are reused, which
 * that library does not do; renewed files and tokens are read as they change.
 */
export class ApiAccess implements AsyncDisposable {
  readonly server: URL
  readonly #config: KubeConfig
  #current: { readonly transport: Transport; readonly tls: object; readonly at: number } | undefined

  /** Throws where the configuration names no usable server. */
  constructor(config: KubeConfig) {
    const cluster = config.getCurrentCluster()
    const server = URL.parse(cluster?.server ?? '')
    if (server === null) throw new Error('the kubeconfig names no API server')
    if (cluster?.proxyUrl !== undefined)
      throw new Error('the kubeconfig has a proxy-url, through which nodehub does not go')
    this.server = server
    this.#config = config
  }

  /**
   * Reads the credentials again where they are due, or where `refused` says that the API server no
   * longer accepts them.
   */
  async transport(refused: boolean): Promise<Transport> {
    const current = this.#current
    if (current && !refused && elapsed() - current.at < refreshMs) return current.transport
    const options: RequestOptions = {}
    // The library refuses plain HTTP, which has nothing to show.
    if (this.server.protocol === 'https:') await this.#config.applyToHTTPSOptions(options)
    const tls = Object.fromEntries(
      (['ca', 'cert', 'key', 'servername', 'rejectUnauthorized'] as const)
        .map((name) => [name, options[name]] as const)
        .filter(([, value]) => value !== undefined),
    )
    const isSame = isDeepStrictEqual(current?.tls, tls)
    if (current && !isSame) void current.transport.agent.close().catch(() => undefined)
    const agent =
      current && isSame
        ? current.transport.agent
        : new Agent({
            connections: mostConnections,
            pipelining: 1,
            connect: {
              ...tls,
              allowPartialTrustChain: true,
              keepAlive: true,
              keepAliveInitialDelay: keepAliveProbeMs,
            },
          })
    const transport = { agent, headers: headersOf(options) }
    this.#current = { transport, tls, at: elapsed() }
    return transport
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#current?.transport.agent.destroy()
  }
}

function headersOf({ headers, auth }: RequestOptions): Record<string, string> {
  const given = Object.entries((headers ?? {}) as Record<string, unknown>)
  const basic =
    typeof auth === 'string'
      ? { authorization: `Basic ${Buffer.from(auth).toString('base64')}` }
      : {}
  return { ...Object.fromEntries(given.map(([name, value]) => [name, String(value)])), ...basic }
}

/**
 * Throws where the files cannot be read. Loads @kubernetes/client-node, which nothing on a node
 * does.
 */
export async function openAccess(where: ClusterAccess): Promise<ApiAccess> {
  const { KubeConfig } = await import('@kubernetes/client-node')
  const config = new KubeConfig()
  if (where.kind === 'kubeconfig') {
    const { file, context } = where
    try {
      // Of several files the context of the first counts, as with kubectl.
      if (file === undefined) config.loadFromDefault(undefined, true)
      else config.loadFromFile(file)
    } catch (cause) {
      const isMissing = (cause as NodeJS.ErrnoException).code === 'ENOENT'
      const why = isMissing
        ? 'there is no such file'
        : String((cause as Error).message).split('\n')[0]
      const which = file ?? 'of $KUBECONFIG or ~/.kube/config'
      throw new Error(`the kubeconfig ${which} cannot be read: ${why}`, { cause })
    }
    if (context !== undefined) {
      const names = config.getContexts().map(({ name }) => name)
      if (!names.includes(context))
        throw new Error(
          `the kubeconfig has no context ${JSON.stringify(context)}${didYouMean(context, names)}`,
        )
      config.setCurrentContext(context)
    }
  } else {
    const { server, tokenFile, caFile } = where
    config.loadFromOptions({
      clusters: [{ name: 'here', server: server.href, caFile, skipTLSVerify: false }],
      users: [{ name: 'pod', authProvider: { name: 'tokenFile', config: { tokenFile } } }],
      contexts: [{ name: 'here', cluster: 'here', user: 'pod' }],
      currentContext: 'here',
    })
  }
  return new ApiAccess(config)
}
