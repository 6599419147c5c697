import {
  contentOf,
  isCertificateOf,
  kubeletCredentials,
  readCredentials,
  type CredentialFiles,
  type ReadFile,
} from './credentials.ts'
import { bootstrapMistakes } from './bootstrap.ts'
import { bootstrapInTheClear, contradictions, observations } from './checks.ts'
import { bootstrapOf, liveConfigOf, startConfigOf, type HubConfig } from './hub-config.ts'
import { options, type LiveValues, type OptionName, type Values } from './options.ts'
import { assignSockets, type PassedSocket } from './passed-sockets.ts'
import { obtainedFiles } from './root-dir.ts'
import { storeKeySource, type StoreKeySource } from './store-key.ts'
import {
  attempt,
  readSettings,
  unreadableFiles,
  type ResolvedSetting,
  type SettingSources,
  warnings,
} from './settings.ts'
import { objectName } from './value.ts'

export type { HubConfig, LogLevel } from './hub-config.ts'

/** A setting with its value and origin. */
export type Setting = ResolvedSetting<OptionName>

export interface ConfigSources extends SettingSources {
  readonly hostname: string
  /** The addresses of this host's network interfaces; absent: unknown. */
  readonly addresses?: readonly string[]
  /** Sockets that were passed to this process; absent: none. */
  readonly passed?: readonly PassedSocket[]
  /**
   * With what a running hub was started, which reads its configuration again; absent: it is read
   * for a start.
   */
  readonly running?: UsableConfig
}

/** A configuration that was read without a mistake. */
export interface UsableConfig {
  /** Of a running hub, with what it was started with until its next start. */
  readonly config: HubConfig
  /** Warnings: settings without effect, mapped to others, or unusual. */
  readonly notes: readonly string[]
  readonly settings: readonly Setting[]
  /** Differs with the content of what was read besides: filter modules. */
  readonly revision?: string
}

export interface UnusableConfig {
  readonly mistakes: readonly string[]
  /** The filter modules, so that their mistakes can be reported together. */
  readonly filterModules: readonly string[]
}

export type ConfigResult = UsableConfig | UnusableConfig

/**
 * Reads the configuration from flags, environment, file and defaults, in this order of precedence.
 * Returns the configuration, or every mistake. Only reads files: opens no socket and no store.
 */
export function readConfig(sources: ConfigSources): ConfigResult {
  const { argv, env, readFile, hostname, addresses = [], passed = [], running } = sources
  const { settings, given, ...read } = readSettings({ argv, env, readFile }, options)
  const mistakes = [...read.mistakes]
  const notes = [...read.notes]
  const values = valuesOf(settings)
  if (read.unread) return { mistakes: [...mistakes, ...notes], filterModules: [] }
  const nodeName = nodeNameOf(values, env['NODE_NAME'], hostname, mistakes)
  const credentials = credentialFiles(values, values['root-dir'], readFile)
  const isTokenMalformed = settings.some(
    ({ name, origin }) => name === 'join-token' && given(name) && origin === undefined,
  )
  const assigned = assignSockets(passed, values)
  const storeKey = storeKeyOf(values, env['CREDENTIALS_DIRECTORY'], readFile, mistakes)
  mistakes.push(
    ...assigned.mistakes,
    ...contradictions(values, given, { names: [hostname, nodeName], addresses }),
    ...bootstrapInTheClear(values, given, credentials),
    ...unreadable(values, settings, credentials, readFile, isTokenMalformed),
  )
  if (running && mistakes.length === 0)
    mistakes.push(...wrongUntilNextStart(sources, settings, given, running))
  // A misspelt variable may be why a setting is missing.
  if (mistakes.length > 0)
    return { mistakes: [...mistakes, ...read.notes], filterModules: values['filter-module'] }
  notes.push(...warnings(settings), ...observations(values, credentials))
  const { sockets } = assigned
  const isNode = isSecure(values) && isNodeItself(nodeName, credentials, readFile)
  const isSignerGiven = given('hub-cert-signer')
  const start =
    running?.config ?? startConfigOf(values, { nodeName, sockets, storeKey, isNode, isSignerGiven })
  const live = liveConfigOf(values, credentialFiles(values, start.rootDir, readFile), start)
  return { config: { ...start, ...live }, notes, settings }
}

const valuesOf = (settings: readonly Setting[]): Values =>
  Object.fromEntries(settings.map(({ name, value }) => [name, value])) as Values

/**
 * Mistakes in what would be in force until the next start: the live settings that were read, under
 * the others of the running hub. Each of the two readings was valid by itself.
 */
function wrongUntilNextStart(
  { hostname, addresses = [], readFile }: ConfigSources,
  settings: readonly Setting[],
  given: (name: OptionName) => boolean,
  running: UsableConfig,
): string[] {
  const started = new Map(running.settings.map((setting) => [setting.name, setting]))
  const mixed = settings.map((read) => (read.option.live ? read : (started.get(read.name) ?? read)))
  const values = valuesOf(mixed)
  const credentials = credentialFiles(values, values['root-dir'], readFile)
  const waiting = settings.filter(
    ({ name, value }) => JSON.stringify(value) !== JSON.stringify(values[name]),
  )
  const names = waiting.map(({ name }) => `--${name}`).join(', ')
  return [
    ...contradictions(values, given, { names: [hostname, running.config.nodeName], addresses }),
    ...bootstrapInTheClear(values, given, credentials),
    ...unusableCredentials(values, credentials, readFile, false),
  ].map((mistake) => `until the next start changes ${names}: ${mistake}`)
}

/** The node's name: as given, else the host's name, which must be valid too. */
function nodeNameOf(
  values: Values,
  fromEnvironment: string | undefined,
  hostname: string,
  mistakes: string[],
): string {
  if (values['node-name'] !== '') return values['node-name']
  const [text, origin] = fromEnvironment
    ? [fromEnvironment, 'NODE_NAME']
    : [hostname.toLowerCase(), "the host's name, for want of --node-name"]
  const parsed = objectName.parse(text)
  if ('wrong' in parsed) mistakes.push(`${origin}: ${JSON.stringify(text)} ${parsed.wrong}`)
  return text
}

/**
 * The credential must exist: systemd creates it before the hub starts. Whether it is a key shows at
 * its first use.
 */
function storeKeyOf(
  { 'store-key-credential': credential, 'store-key-command': command }: Values,
  directory: string | undefined,
  readFile: ReadFile,
  mistakes: string[],
): StoreKeySource {
  const source = storeKeySource({ credential, command }, directory)
  if ('wrong' in source) {
    mistakes.push(source.wrong)
    return { kind: 'own' }
  }
  attempt(mistakes, `--store-key-credential=${credential}`, () => {
    if (source.kind === 'credential') contentOf(source.file, readFile)
  })
  return source
}

function credentialFiles(values: LiveValues, rootDir: string, readFile: ReadFile): CredentialFiles {
  if (values.kubeconfig !== undefined) return { kind: 'kubeconfig', file: values.kubeconfig }
  const certificate = values['upstream-client-cert']
  const key = values['upstream-client-key']
  const ca = values['upstream-ca']
  const isGiven = certificate !== undefined || key !== undefined
  if (!isGiven && isBootstrapped(values, rootDir, readFile)) {
    const obtained = obtainedFiles(rootDir)
    return { kind: 'bootstrap', pair: obtained.pair, ca: ca ?? obtained.ca }
  }
  if (isGiven || ca !== undefined) return { kind: 'files', certificate, key, ca }
  return values['bootstrap-mode'] === 'kubeletcertificate' ? kubeletCredentials : { kind: 'none' }
}

/** Whether the hub obtains its own certificate, or has obtained one before. */
function isBootstrapped(values: LiveValues, rootDir: string, readFile: ReadFile): boolean {
  if (values['bootstrap-mode'] !== 'token') return false
  if (values['join-token'] !== undefined || values['bootstrap-file'] !== undefined) return true
  if (!isSecure(values)) return false
  const { pair, token } = obtainedFiles(rootDir)
  return [pair, token].some((file) => isReadable(file, readFile))
}

/** Whether the hub has a client certificate of this node, or obtains one. */
function isNodeItself(nodeName: string, files: CredentialFiles, readFile: ReadFile): boolean {
  if (files.kind === 'bootstrap') return true
  const { certificate } = readCredentials(files, readFile)
  return certificate !== undefined && isCertificateOf(nodeName, certificate.chain)
}

/** API servers over plain HTTP, which are for tests, authenticate no client by a certificate. */
const isSecure = (values: LiveValues): boolean =>
  values['server-addr'].some(({ protocol }) => protocol === 'https:')

function isReadable(file: string, readFile: ReadFile): boolean {
  try {
    readFile(file)
    return true
  } catch {
    return false
  }
}

/** Mistakes in the files of settings. */
function unreadable(
  values: Values,
  settings: readonly Setting[],
  credentials: CredentialFiles,
  readFile: ReadFile,
  isTokenMalformed: boolean,
): string[] {
  const mistakes = unreadableFiles(settings, readFile)
  // Only if every file is readable: otherwise the same mistake would appear twice.
  if (mistakes.length > 0) return mistakes
  const { 'client-ca': ca, 'serving-cert': certificate, 'serving-key': key } = values
  const attemptCredentials = (files: CredentialFiles, name: string): void =>
    attempt(mistakes, name, () => readCredentials(files, readFile))
  mistakes.push(...unusableCredentials(values, credentials, readFile, isTokenMalformed))
  if (ca !== undefined) attemptCredentials({ kind: 'files', ca }, '--client-ca')
  if (certificate !== undefined && key !== undefined)
    attemptCredentials({ kind: 'files', certificate, key }, '--serving-cert, --serving-key')
  return mistakes
}

/** Mistakes in the hub's own credentials, and how it obtains them. */
function unusableCredentials(
  values: Values,
  credentials: CredentialFiles,
  readFile: ReadFile,
  isTokenMalformed: boolean,
): string[] {
  const mistakes: string[] = []
  // By itself first, so that its file is not blamed on the flags of the certificate.
  const isGiven = credentials.kind === 'files' && credentials !== kubeletCredentials
  const { ca } = isGiven ? credentials : {}
  if (ca !== undefined)
    attempt(mistakes, '--upstream-ca', () => readCredentials({ kind: 'files', ca }, readFile))
  if (mistakes.length > 0) return mistakes
  attempt(mistakes, nameOf(credentials, values), () => {
    const own = readCredentials(credentials, readFile)
    if (credentials.kind === 'bootstrap')
      mistakes.push(...bootstrapMistakes(bootstrapOf(values), own, readFile))
    else if (own.certificate === undefined && own.token === undefined && !isTokenMalformed) {
      // An API server over plain HTTP, of a test, takes none.
      if (isSecure(values) && values['bootstrap-mode'] !== 'anonymous')
        mistakes.push(needsCredentials)
    }
  })
  return mistakes
}

/** It is a mistake unless it was chosen. */
const needsCredentials =
  'the hub has no credentials, and API servers would refuse it: give --bootstrap-mode=kubeletcertificate, --join-token, --bootstrap-file, --kubeconfig, or --upstream-client-cert and --upstream-client-key; a hub for callers with tokens alone is --bootstrap-mode=anonymous'

const nameOf = (credentials: CredentialFiles, values: Values): string =>
  credentials.kind === 'kubeconfig'
    ? `--kubeconfig=${values.kubeconfig}`
    : credentials === kubeletCredentials
      ? '--bootstrap-mode=kubeletcertificate'
      : credentials.kind === 'bootstrap'
        ? '--bootstrap-mode=token'
        : '--upstream-client-cert, --upstream-client-key'
