import { flagsIn, type FlagWord } from '../../config/raw-settings.ts'
import { options, type OptionName } from '../../config/options.ts'
import { isAcceptedOnly, type Option } from '../../config/option.ts'
import { withoutPassword, type ValueType } from '../../config/value.ts'
import { usualPorts, type HubPorts } from '../join/static-pod.ts'

/** A flag of yurthub, and the hub's flag for it. */
export interface MappedFlag {
  /** The flag as it was given, without secrets. */
  readonly given: string
  readonly fate: 'kept' | 'changed' | 'dropped'
  /** The hub's flag in its place. */
  readonly to?: string
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
  /** Those that the hub takes as they are, or under its own name. */
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
  readonly rootDir: string
  /** The hub's credentials at API servers, as part of a reason. */
  readonly credentials: string
  readonly hubCertSigner: string | undefined
}

/** Settings of the hub that `nodehub adopt` decides. */
const ownState = new Map<string, string>([
  ['root-dir', "the hub has state of its own; yurthub's stays for the way back"],
  ['disk-cache-path', "the hub has a cache of its own, which begins empty; yurthub's stays"],
])

const credentialFlags = new Set<string>([
  'bootstrap-mode',
  'bootstrap-file',
  'join-token',
  'discovery-token-ca-cert-hash',
  'discovery-token-unsafe-skip-ca-verification',
])

/** Settings for which the hub has a way of its own. */
const structural = new Set<string>([
  'server-addr',
  'namespace',
  'nodepool-name',
  'node-name',
  'proxy-port',
  'proxy-secure-port',
  'serve-port',
])

/** Addresses at which a hub answers at loopback. */
const nearAddresses = new Set(['127.0.0.1', '::1', '0.0.0.0', '::'])

/** Maps each flag of yurthub to one of the hub, or to none with the reason. */
export function mapFlags(argv: readonly string[], given: MappingOptions): MappedFlags {
  const flags: MappedFlag[] = []
  const more: string[] = []
  const mistakes: string[] = []
  const values = new Map<string, unknown>()
  const found = new Set<string>()
  for (const flag of joined([...flagsIn(argv, options)])) {
    const shown = shownAs(flag)
    const { called, name } = flag
    if (called === undefined) {
      mistakes.push(`${shown} is not a flag`)
      continue
    }
    found.add(called)
    if (given.dropped.includes(called)) {
      flags.push({ given: shown, fate: 'dropped', reason: '--drop-flags names it' })
      continue
    }
    const option = name === undefined ? undefined : (options[name as OptionName] as Option<unknown>)
    if (name === undefined || option === undefined) {
      mistakes.push(
        `${shown} is a flag that the hub does not know: --drop-flags=${called} leaves it out`,
      )
      continue
    }
    const parsed = flag.text === undefined ? undefined : option.type.parse(flag.text)
    if (parsed === undefined || 'wrong' in parsed) {
      const why = parsed === undefined ? 'needs a value' : parsed.wrong
      mistakes.push(`${shown} ${why}: correct it, or leave it out with --drop-flags=${called}`)
      continue
    }
    values.set(name, parsed.value)
    const mapped = mappedTo(flag, name, option, parsed.value, given)
    flags.push({ given: shown, ...mapped })
    if (mapped.fate !== 'dropped' && !structural.has(name) && name !== 'root-dir')
      more.push(mapped.to ?? `--${name}=${flag.text}`)
  }
  for (const name of given.dropped.filter((name) => !found.has(name)))
    mistakes.push(`--drop-flags names ${name}, and yurthub has no such flag here`)
  if (values.get('working-mode') === 'local')
    mistakes.push(
      '--working-mode=local: such a yurthub is no proxy of the kubelet, and the hub cannot take its place',
    )
  for (const name of ['bind-address', 'bind-proxy-address']) {
    const address = values.get(name) as string | undefined
    if (address === undefined || nearAddresses.has(address)) continue
    mistakes.push(
      `--${name}=${address}: the hub is probed at 127.0.0.1, and kubelets look for it there: --drop-flags=${name}`,
    )
  }
  const servers = (values.get('server-addr') ?? []) as readonly URL[]
  if (servers.length === 0 && !mistakes.some((mistake) => mistake.startsWith('--server-addr')))
    mistakes.push(
      'yurthub has no --server-addr, without which the hub does not know its API servers',
    )
  const nodePool = values.get('nodepool-name') as string | undefined
  const nodeName = values.get('node-name') as string | undefined
  return {
    flags,
    serverAddresses: servers,
    namespace: (values.get('namespace') as string | undefined) ?? 'kube-system',
    ...(nodePool !== undefined && { nodePool }),
    ...(nodeName !== undefined && nodeName !== '' && { nodeName }),
    ports: {
      proxy: (values.get('proxy-port') as number | undefined) ?? usualPorts.proxy,
      secure: (values.get('proxy-secure-port') as number | undefined) ?? usualPorts.secure,
      ops: (values.get('serve-port') as number | undefined) ?? usualPorts.ops,
    },
    more,
    dummyInterface: values.get('enable-dummy-if') !== false,
    disabledFilters: (values.get('disabled-resource-filters') ?? []) as readonly string[],
    mistakes,
  }
}

/** Of a flag that is given again the last counts, of a list all; the text of an unknown one. */
function joined(words: readonly FlagWord[]): readonly FlagWord[] {
  const flags: FlagWord[] = []
  for (const word of words) {
    const before = flags.at(-1)
    const same = flags.findIndex(({ name }) => name !== undefined && name === word.name)
    if (word.called === undefined && before && before.name === undefined && before.called)
      flags[flags.length - 1] = { ...before, text: word.word }
    else if (same < 0) flags.push(word)
    else {
      const former = flags[same]?.text
      const { adds }: ValueType<unknown> = options[word.name as OptionName].type
      const isMore = adds !== undefined && former !== undefined
      const text = isMore ? `${former}${adds}${word.text}` : word.text
      flags[same] = { ...word, ...(text !== undefined && { text }) }
    }
  }
  return flags
}

/** `--name=value` in one word. */
function shownAs({ word, called, name, text }: FlagWord): string {
  if (called === undefined) return JSON.stringify(word)
  const option = name === undefined ? undefined : (options[name as OptionName] as Option<unknown>)
  if (option?.secret) return `--${called}=[redacted]`
  return text === undefined ? `--${called}` : `--${called}=${withoutPassword(text)}`
}

function mappedTo(
  { called, text = '' }: FlagWord,
  name: string,
  option: Option<unknown>,
  value: unknown,
  { rootDir, credentials, hubCertSigner }: MappingOptions,
): Omit<MappedFlag, 'given'> {
  const state = ownState.get(name)
  if (name === 'root-dir' && state !== undefined)
    return { fate: 'changed', to: `--root-dir=${rootDir}`, reason: state }
  if (state !== undefined) return { fate: 'dropped', reason: state }
  if (credentialFlags.has(name)) return { fate: 'dropped', reason: credentials }
  if (name === 'version') return { fate: 'dropped', reason: 'it would print the version and end' }
  if (name === 'node-name')
    return { fate: 'changed', to: 'NODE_NAME', reason: 'the hub has it from its environment' }
  const warning = option.warningFor?.(value)
  if (isAcceptedOnly(option.group))
    return { fate: 'dropped', reason: warning ?? 'the hub has no such function' }
  if (name === 'hub-cert-organizations' && hubCertSigner === undefined)
    return { fate: 'dropped', reason: 'it has no effect without --hub-cert-signer' }
  if (value === undefined || (text === '' && option.default === undefined))
    return { fate: 'dropped', reason: 'it is empty' }
  const to = typeof value === 'string' && name === 'lb-mode' ? value : text
  const reason = warning === undefined ? {} : { reason: warning }
  return to !== text || called !== name
    ? { fate: 'changed', to: `--${name}=${to}`, ...reason }
    : { fate: 'kept', ...reason }
}
