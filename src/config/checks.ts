import type { CredentialFiles } from './credentials.ts'
import { filterNames } from './filter-names.ts'
import { plainProxyOf } from './hub-config.ts'
import type { OptionName, Values } from './options.ts'
import { ownServers, type OwnHost } from './own-listeners.ts'
import { didYouMean } from './suggestion.ts'

/**
 * Mistakes in the combination of settings, and missing ones. `given` is whether a setting was
 * given, valid or not.
 */
export function contradictions(
  values: Values,
  given: (name: OptionName) => boolean,
  own: OwnHost,
): string[] {
  const mistakes: string[] = []
  const servers = values['server-addr'].map(({ origin }) => origin)
  const twice = servers.filter((server, i) => servers.indexOf(server) < i)
  if (servers.length === 0 && !given('server-addr'))
    mistakes.push('--server-addr is required: the address of an API server')
  if (twice.length > 0) mistakes.push(`--server-addr: ${twice.join(', ')} is there twice`)
  if (values.kubeconfig !== undefined) {
    for (const name of ['upstream-client-cert', 'upstream-client-key', 'upstream-ca'] as const) {
      if (values[name] !== undefined) mistakes.push(`--kubeconfig and --${name}: give one of them`)
    }
  }
  mistakes.push(
    ...together(values, 'upstream-client-cert', 'upstream-client-key'),
    ...together(values, 'serving-cert', 'serving-key'),
    ...(values['hub-cert-signer'] !== undefined && values['serving-cert'] !== undefined
      ? ['--hub-cert-signer and --serving-cert: give one of them']
      : []),
    ...portsInTheWay(values),
    ...ownServers(values, own),
    // The filters of modules are known once they are loaded.
    ...(values['filter-module'].length > 0
      ? []
      : unknownFilters(values['disabled-resource-filters'], filterNames)),
  )
  return mistakes
}

/**
 * A mistake where a hub that obtains its credentials would send its bootstrap token to an API
 * server without TLS. Tests have hubs without credentials at such a server, with the default mode.
 */
export function bootstrapInTheClear(
  values: Values,
  given: (name: OptionName) => boolean,
  { kind }: CredentialFiles,
): string[] {
  const plain = values['server-addr'].filter(({ protocol }) => protocol === 'http:')
  const wanted = values['bootstrap-mode'] === 'token' && given('bootstrap-mode')
  if (plain.length === 0 || !(kind === 'bootstrap' || (kind === 'none' && wanted))) return []
  return [`--server-addr: ${tokenInTheClear(plain)}`]
}

/** Why a bootstrap token is not sent to these addresses, of plain HTTP. */
export const tokenInTheClear = (plain: readonly URL[]): string =>
  `${plain.map(({ origin }) => origin).join(', ')} has no TLS, and anyone on the network path could read the bootstrap token: give an https: address`

function together(values: Values, a: OptionName, b: OptionName): string[] {
  return (values[a] === undefined) === (values[b] === undefined)
    ? []
    : [`--${a} and --${b} must be given together`]
}

/** Mistakes for disabled filters that are none of the `known` ones. */
export function unknownFilters(disabled: Iterable<string>, known: readonly string[]): string[] {
  return [...disabled]
    .filter((name) => name !== '*' && !known.includes(name))
    .map(
      (name) =>
        `--disabled-resource-filters: ${JSON.stringify(name)} is no filter${didYouMean(name, known)}`,
    )
}

function portsInTheWay(values: Values): string[] {
  const listeners = listenerFlags(values)
  return listeners.flatMap(([name, address], i) =>
    listeners
      .slice(0, i)
      .filter(
        ([other, its]) =>
          values[name] !== 0 && values[name] === values[other] && overlap(address, its),
      )
      .map(([other]) => `--${other} and --${name} are both ${values[name]}`),
  )
}

/** The flag of each listener's port, and its address. */
const listenerFlags = (values: Values) =>
  [
    ['serve-port', values['bind-address']],
    ['proxy-port', values['bind-proxy-address']],
    ['proxy-secure-port', values['bind-proxy-address']],
  ] as const

const overlap = (a: string, b: string): boolean =>
  a === b || [a, b].some((address) => address === '0.0.0.0' || address === '::')

const bootstrapFlags = [
  'join-token',
  'bootstrap-file',
  'discovery-token-ca-cert-hash',
  'discovery-token-unsafe-skip-ca-verification',
] as const

/** Notes on flags for bootstrapping that have no effect, as the hub obtains no credentials. */
function unusedBootstrap(values: Values, { kind }: CredentialFiles): string[] {
  if (kind === 'bootstrap') return []
  const mode = values['bootstrap-mode']
  const why =
    mode === 'token'
      ? 'credentials are given, or API servers without TLS'
      : `--bootstrap-mode is ${mode}`
  return bootstrapFlags
    .filter((name) => !['', 'false', 'undefined'].includes(String(values[name])))
    .map((name) => `--${name} has no effect: ${why}`)
}

/** Warnings about valid settings. */
export function observations(values: Values, credentials: CredentialFiles): string[] {
  const notes: string[] = []
  if (credentials.kind === 'none') {
    notes.push(
      'no credentials are given: callers without a token of their own are anonymous at the API servers',
    )
  }
  notes.push(...unusedBootstrap(values, credentials))
  const plain = values['server-addr'].filter(({ protocol }) => protocol === 'http:')
  if (plain.length > 0)
    notes.push(`${plain.map(String).join(', ')} is spoken to without TLS: for tests only`)
  const vouched =
    credentials.kind === 'kubeconfig' ||
    credentials.kind === 'bootstrap' ||
    (credentials.kind === 'files' && credentials.ca !== undefined)
  if (values['client-ca'] === undefined && !vouched) {
    notes.push(
      'no CA for clients of the TLS listener: without --client-ca only tokens are accepted',
    )
  }
  if (values['hub-cert-organizations'].length > 0 && values['hub-cert-signer'] === undefined)
    notes.push('--hub-cert-organizations has no effect without --hub-cert-signer')
  if (values['tracing-sampling-rate-per-million'] > 0 && values['tracing-endpoint'] === undefined)
    notes.push('--tracing-sampling-rate-per-million has no effect without --tracing-endpoint')
  const loopback = ['127.', '::1'].some((start) => values['bind-proxy-address'].startsWith(start))
  if (!loopback && plainProxyOf(values) === 'served') {
    notes.push(
      `--bind-proxy-address=${values['bind-proxy-address']} lets other machines reach a proxy without TLS`,
    )
  }
  return notes
}
