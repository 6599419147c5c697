import { isAcceptedOnly } from '../../config/option.ts'
import { options, type Values } from '../../config/options.ts'
import { settingsFromFlags } from '../../config/raw-settings.ts'
import { resolve, type ResolvedSetting } from '../../config/settings.ts'
import { withoutPassword } from '../../config/value.ts'
import { usualPorts, type HubPorts } from '../join/static-pod.ts'

/** A flag of yurthub, which the hub is given or not. */
export interface MappedFlag {
  /** The flag as it was given, without secrets. */
  readonly given: string
  readonly fate: 'kept' | 'dropped'
  readonly reason?: string
}

/** The settings of the hub that follow from the flags of yurthub. */
export interface MappedFlags {
  readonly flags: readonly MappedFlag[]
  readonly serverAddresses: readonly URL[]
  readonly namespace: string
  readonly nodePool?: string
  readonly nodeName?: string
  readonly ports: HubPorts
  /** The other flags that the hub takes, under its own names. */
  readonly more: readonly string[]
  /** Whether yurthub makes the interface at which pods reach it. */
  readonly dummyInterface: boolean
  readonly disabledFilters: readonly string[]
  /** Why the flags cannot be mapped, a sentence each. */
  readonly mistakes: readonly string[]
}

export interface MappingOptions {
  /** Names of flags to leave out. */
  readonly dropped: readonly string[]
  readonly hubCertSigner: string | undefined
}

const credentials = 'the hub has the credentials that are named below'

/** Why the hub is not given a flag of this name. */
const reasons: Readonly<Record<string, string>> = {
  'root-dir': "the hub has state of its own; yurthub's stays for the way back",
  'disk-cache-path': "the hub has a cache of its own, which begins empty; yurthub's stays",
  'bootstrap-mode': credentials,
  'bootstrap-file': credentials,
  'join-token': credentials,
  'discovery-token-ca-cert-hash': credentials,
  'discovery-token-unsafe-skip-ca-verification': credentials,
  'node-name': 'the hub has it from its environment',
  version: 'it would print the version and end',
}

/** Settings for which the hub has a way of its own. */
const structural = new Set<string>([
  'server-addr',
  'namespace',
  'nodepool-name',
  'proxy-port',
  'proxy-secure-port',
  'serve-port',
])

/** Addresses at which a hub answers at loopback. */
const nearAddresses = new Set(['127.0.0.1', '::1', '0.0.0.0', '::'])

/** Maps each flag of yurthub to that of the hub, or to none with the reason. */
export function mapFlags(argv: readonly string[], given: MappingOptions): MappedFlags {
  const { dropped } = given
  const { taken, left } = apart(argv, dropped)
  const { settings, words, mistakes } = settingsFromFlags(taken, options)
  const wrong = [...mistakes, ...words.map((word) => `${JSON.stringify(word)} is not a flag`)]
  const all = [...settings].map(([name, raw]) =>
    resolve(name, options[name as keyof typeof options], raw, wrong),
  )
  const mapped = all.map((setting) => ({
    setting,
    why: reasons[setting.name] ?? whyDropped(setting, given),
  }))
  const values = Object.fromEntries(all.map(({ name, value }) => [name, value])) as Partial<Values>
  const servers = values['server-addr'] ?? []
  return {
    flags: [
      ...mapped.map(({ setting, why }) => flagOf(setting, why)),
      ...left.map((name): MappedFlag => ({
        given: `--${name}`,
        fate: 'dropped',
        reason: '--drop-flags names it',
      })),
    ],
    serverAddresses: servers,
    namespace: values.namespace ?? 'kube-system',
    ...(values['nodepool-name'] !== undefined && { nodePool: values['nodepool-name'] }),
    ...(values['node-name'] && { nodeName: values['node-name'] }),
    ports: {
      proxy: values['proxy-port'] ?? usualPorts.proxy,
      secure: values['proxy-secure-port'] ?? usualPorts.secure,
      ops: values['serve-port'] ?? usualPorts.ops,
    },
    more: mapped.flatMap(({ setting: { name, text }, why }) =>
      why !== undefined || structural.has(name) ? [] : [`--${name}=${text}`],
    ),
    dummyInterface: values['enable-dummy-if'] !== false,
    disabledFilters: values['disabled-resource-filters'] ?? [],
    mistakes: [
      ...wrong.map((each) => `${each}: correct it, or name the flag in --drop-flags`),
      ...dropped
        .filter((name) => !left.includes(name))
        .map((name) => `--drop-flags names ${name}, and yurthub has no such flag here`),
      ...unfit(values),
    ],
  }
}

/** Why the hub cannot take the place of such a yurthub. */
function unfit(values: Partial<Values>): readonly string[] {
  const local =
    '--working-mode=local: such a yurthub is no proxy of the kubelet, and the hub cannot take its place'
  const far = (['bind-address', 'bind-proxy-address'] as const).filter(
    (name) => !nearAddresses.has(values[name] ?? '::'),
  )
  return [
    ...(values['working-mode'] === 'local' ? [local] : []),
    ...far.map(
      (name) =>
        `--${name}=${values[name]}: the hub is probed at 127.0.0.1, and kubelets look for it there: --drop-flags=${name}`,
    ),
    ...(values['server-addr'] === undefined
      ? ['yurthub has no --server-addr, without which the hub does not know its API servers']
      : []),
  ]
}

/** The words without these flags and their values, and those of the flags that were there. */
function apart(
  argv: readonly string[],
  names: readonly string[],
): { readonly taken: readonly string[]; readonly left: readonly string[] } {
  const left = new Set<string>()
  let isLeft = false
  const taken = argv.filter((word) => {
    const called = /^--?([^=]+)/.exec(word)?.[1]?.replaceAll('_', '-')
    if (called === undefined) return !isLeft
    const isNamed = names.includes(called)
    isLeft = isNamed && !word.includes('=')
    if (isNamed) left.add(called)
    return !isNamed
  })
  return { taken, left: [...left] }
}

function whyDropped(
  { name, option, value, text }: ResolvedSetting<string>,
  { hubCertSigner }: MappingOptions,
): string | undefined {
  if (isAcceptedOnly(option.group))
    return option.warningFor?.(value) ?? 'the hub has no such function'
  if (name === 'hub-cert-organizations' && hubCertSigner === undefined)
    return 'it has no effect without --hub-cert-signer'
  return value === undefined || (text === '' && option.default === undefined)
    ? 'it is empty'
    : undefined
}

function flagOf(
  { option, value, text = '', origin }: ResolvedSetting<string>,
  why: string | undefined,
): MappedFlag {
  const given = `${origin}=${option.secret ? '[redacted]' : withoutPassword(text)}`
  const reason = why ?? option.warningFor?.(value)
  return {
    given,
    fate: why === undefined ? 'kept' : 'dropped',
    ...(reason !== undefined && { reason }),
  }
}
