import { BlockList, isIPv6 } from 'node:net'
import { canonical } from '../base/listening-sockets.ts'
import { readCredentials } from './credentials.ts'
import {
  type checkOptions,
  clusterOptions,
  exitPlanOptions,
  type giveBackOptions,
} from './cluster-options.ts'
import {
  attempt,
  readSettings,
  unreadableFiles,
  warnings,
  type SettingSources,
} from './settings.ts'
import type { OptionTable, ValuesOf } from './option.ts'

/** The API server and its credentials. */
export type ClusterAccess =
  /** Without a file: that of $KUBECONFIG or ~/.kube/config, or the service account of a pod. */
  | { readonly kind: 'kubeconfig'; readonly file?: string; readonly context?: string }
  /** The service account of this pod; the kubelet renews both files. */
  | {
      readonly kind: 'pod'
      readonly server: URL
      readonly tokenFile: string
      readonly caFile: string
    }

/** How to reach the API server. */
export interface ClusterClientConfig {
  readonly access: ClusterAccess
  readonly namespace: string
}

/** The serving certificate of the webhooks: files, or one that is created and kept in a Secret. */
export type ClusterServing = ReturnType<typeof servingOf>

/** The configuration of `nodehub cluster`, parsed once; times are in milliseconds. */
export type ClusterConfig = ConfigOf<typeof readClusterConfig>

/** What nodes may request for their hubs: requests of these signers are approved, or denied. */
export type HubCertificateRules = ClusterConfig['hubCertificates']

/** The configuration of `nodehub cluster exit-plan`. */
export type ExitPlanConfig = ConfigOf<typeof readExitPlanConfig>

type ConfigOf<Read extends (sources: SettingSources) => ClusterResult<unknown>> = Extract<
  ReturnType<Read>,
  { readonly config: unknown }
>['config']

export type ClusterResult<Config> =
  | { readonly config: Config; readonly notes: readonly string[] }
  | { readonly mistakes: readonly string[] }

/** Where the kubelet mounts a pod's service account. */
const account = '/var/run/secrets/kubernetes.io/serviceaccount'

/**
 * Reads flags, environment and file of `nodehub cluster`. Returns the configuration, or every
 * mistake.
 */
export const readClusterConfig = (sources: SettingSources) =>
  read(sources, clusterOptions, (values, client, mistakes) => {
    mistakes.push(...contradictions(values))
    const serving = servingOf(values)
    if (serving.kind === 'files' && mistakes.length === 0)
      attempt(mistakes, '--serving-cert, --serving-key, --serving-ca', () =>
        readCredentials(serving, sources.readFile),
      )
    const clientCa = values['client-ca']
    if (clientCa !== undefined && mistakes.length === 0)
      attempt(mistakes, '--client-ca', () =>
        readCredentials({ kind: 'files', ca: clientCa }, sources.readFile),
      )
    return {
      ...client,
      webhooks: {
        address: values['webhook-address'],
        port: values['webhook-port'],
        service: values['webhook-service'],
        serving,
        /** The file with the authorities for API servers' client certificates. */
        clientCa,
        /** Pods of host-network pools are given hostNetwork. */
        podHostNetwork: values['pod-host-network'],
      },
      election: {
        name: values['lease-name'],
        leaseMs: values['lease-duration'],
        renewMs: values['renew-deadline'],
        retryMs: values['retry-period'],
      },
      hubCertificates: {
        signers: [...new Set(values['hub-cert-signers'])],
        /** Besides `system:nodes`. */
        organizations: values['hub-cert-organizations'],
        names: values['hub-cert-names'],
        /** In their canonical form. */
        addresses: values['hub-cert-addresses'].map(canonical),
        /** Where a node's own address may be, to be in its hub's certificate. */
        nodeNetworks: networksOf(values['hub-cert-node-cidrs']),
      },
      takeOver: values['take-over'],
      workers: values.workers,
      ops: { address: values['ops-address'], port: values['ops-port'] },
      logLevel: values['log-level'],
      shutdownGracePeriodMs: values['shutdown-grace-period'],
    }
  })

function networksOf(cidrs: readonly string[]): BlockList {
  const networks = new BlockList()
  for (const cidr of cidrs) {
    const [address = '', bits] = cidr.split('/')
    networks.addSubnet(address, Number(bits), isIPv6(address) ? 'ipv6' : 'ipv4')
  }
  return networks
}

/** The same for a subcommand that has no settings of its own in force. */
export const readClientConfig = (
  sources: SettingSources,
  table: typeof checkOptions | typeof giveBackOptions,
): ClusterResult<ClusterClientConfig> => read(sources, table, (_values, client) => client)

/** The same for `nodehub cluster exit-plan`. */
export const readExitPlanConfig = (sources: SettingSources) =>
  read(sources, exitPlanOptions, (values, client) => ({
    ...client,
    /** `namespace/name`. */
    keepOff: values['keep-off'],
    output: values.output,
  }))

function read<Table extends OptionTable & typeof giveBackOptions, Config>(
  sources: SettingSources,
  table: Table,
  make: (values: ValuesOf<Table>, client: ClusterClientConfig, mistakes: string[]) => Config,
): ClusterResult<Config> {
  const { settings, given, ...read } = readSettings(sources, table)
  const mistakes = [...read.mistakes, ...unreadableFiles(settings, sources.readFile)]
  if (read.unread) return { mistakes: [...mistakes, ...read.notes] }
  const values = Object.fromEntries(
    settings.map(({ name, value }) => [name, value]),
  ) as ValuesOf<Table> & ValuesOf<typeof giveBackOptions>
  const access = accessOf(values, sources)
  if ('wrong' in access) mistakes.push(access.wrong)
  const client: ClusterClientConfig = {
    access: 'wrong' in access ? { kind: 'kubeconfig', file: '' } : access,
    namespace: given('namespace') ? values.namespace : (ownNamespace(sources) ?? values.namespace),
  }
  const config = make(values, client, mistakes)
  return mistakes.length > 0
    ? { mistakes: [...mistakes, ...read.notes] }
    : { config, notes: [...read.notes, ...warnings(settings)] }
}

function accessOf(
  { kubeconfig, context }: ValuesOf<typeof giveBackOptions>,
  { env }: SettingSources,
): ClusterAccess | { readonly wrong: string } {
  if (kubeconfig !== undefined)
    return { kind: 'kubeconfig', file: kubeconfig, ...(context !== undefined && { context }) }
  if (context !== undefined) return { wrong: '--context: it is one of a --kubeconfig' }
  const host = env['KUBERNETES_SERVICE_HOST']
  if (!host)
    return { wrong: '--kubeconfig is required where this is no pod with a service account' }
  const server = URL.parse(
    `https://${host.includes(':') ? `[${host}]` : host}:${env['KUBERNETES_SERVICE_PORT'] ?? '443'}`,
  )
  if (server === null) return { wrong: `KUBERNETES_SERVICE_HOST: ${host} is no address` }
  return { kind: 'pod', server, tokenFile: `${account}/token`, caFile: `${account}/ca.crt` }
}

function ownNamespace({ readFile }: SettingSources): string | undefined {
  try {
    return readFile(`${account}/namespace`).trim() || undefined
  } catch {
    return undefined
  }
}

type ClusterValues = ValuesOf<typeof clusterOptions>

function servingOf(values: ClusterValues) {
  const { 'serving-cert': certificate, 'serving-key': key, 'serving-ca': ca } = values
  return certificate !== undefined && key !== undefined
    ? ({ kind: 'files', certificate, key, ca } as const)
    : ({ kind: 'secret', name: values['certificate-secret'] } as const)
}

function contradictions(values: ClusterValues): string[] {
  const mistakes: string[] = []
  if ((values['serving-cert'] === undefined) !== (values['serving-key'] === undefined))
    mistakes.push('--serving-cert and --serving-key go together')
  else if (values['serving-ca'] !== undefined && values['serving-cert'] === undefined)
    mistakes.push('--serving-ca: it goes with --serving-cert')
  if (values['renew-deadline'] >= values['lease-duration'])
    mistakes.push('--renew-deadline must be less than --lease-duration: two would lead')
  if (values['retry-period'] * 1.2 >= values['renew-deadline'])
    mistakes.push('--retry-period must be less than --renew-deadline by a fifth at least')
  if (values['retry-period'] === 0) mistakes.push('--retry-period must not be 0')
  return mistakes
}
