import { HubInformer, unreadable, type InformerState } from '../cache/hub-informer.ts'
import { readConfigMap, type ClusterSettings, type ConfigMapData } from '../../config/config-map.ts'
import type { SettingsReport } from '../../config/settings-in-force.ts'
import { membersOf } from '../filter/inputs/node.ts'
import { configMaps } from '../../api/kube/resources.ts'
import { selectorOfName } from '../../api/kube/selectors.ts'
import { hubIdentity } from '../../api/request/identity.ts'
import { documentAt, putDocument } from '../store/document.ts'
import type { ObjectKey, ObjectStore } from '../store/store.ts'
import type { EnabledFilters } from './enabled-filters.ts'
import { unusableLine } from './health.ts'
import type { RecordedComponents } from './data-path.ts'
import type { SourceParts } from './input-source.ts'
import { logFailure } from './log-failure.ts'

interface ConfigMapDependencies extends SourceParts {
  readonly store: Pick<ObjectStore, 'get' | 'put'>
  readonly filters: Pick<EnabledFilters, 'setAdditionalComponents' | 'ownNames'>
  readonly recorded: Pick<RecordedComponents, 'add'>
}

/** The changes that the cluster's ConfigMap makes. */
export interface ConfigMapReport {
  /** Its namespace and name. */
  readonly name: string
  /** The components that it adds, by its keys: `cache_agents`, and the names of filters. */
  readonly adds: Readonly<Record<string, readonly string[]>>
  /** Why it cannot be read or used, and the keys that are ignored. */
  readonly notes: readonly string[]
}

/** Where the configuration of a hub comes from, for `nodehub inspect config`. */
export interface HubConfigReport extends SettingsReport {
  /** `null` where none is read. */
  readonly configMap: ConfigMapReport | null
}

/**
 * Watches the ConfigMap by which the cluster configures its hubs, and applies it without a restart:
 * all of it, or none where part of it is invalid, so that the last valid one stays in force, over
 * restarts as well. After the ConfigMap is deleted only the flags count.
 */
export class HubConfigMap implements AsyncDisposable {
  readonly #dependencies: ConfigMapDependencies
  readonly #informer: HubInformer<ConfigMapData> | undefined
  readonly #name: string
  #settings: ClusterSettings | undefined
  #unusable: string | undefined
  #refused: string | undefined
  #ignored = ''

  constructor(dependencies: ConfigMapDependencies) {
    const { config, cloud, dispatch, store, log } = dependencies
    const { configMap: of } = config
    this.#dependencies = dependencies
    this.#name = of ? `${of.namespace}/${of.name}` : ''
    if (!of) return
    const fieldSelector = selectorOfName(of.name)
    this.#apply(storedAt(store, keyOf(this.#name)) ?? none)
    this.#informer = new HubInformer<ConfigMapData>({
      of: {
        versions: [configMaps],
        namespace: of.namespace,
        fieldSelector,
        encoding: 'json',
      },
      ask: dispatch,
      linkChanged: () => cloud.onlineChanged,
      read: ({ bytes }) => dataOf(bytes),
      onValues: (values) => this.#read(values.get(this.#name)),
      onState: (state) => this.#setState(state),
      onFailed: (err) => logFailure(log, 'debug', { err }, "cannot read the hubs' ConfigMap"),
    })
  }

  /** Retries a refused read, which may have been granted since. */
  reconfigure(): void {
    this.#informer?.retry()
  }

  /** For `/readyz?verbose`: it does not affect readiness. */
  verboseLines(): string[] {
    return [this.#unusable, this.#refused].flatMap((line) => line ?? [])
  }

  /** The changes that it makes; `null` where none is read. */
  report(): ConfigMapReport | null {
    if (!this.#informer) return null
    const { cacheAgents = [], components = [] } = this.#settings ?? {}
    const adds = [['cache_agents', cacheAgents] as const, ...components]
      .map(([key, names]) => [key, [...names]] as const)
      .filter(([, names]) => names.length > 0)
    return {
      name: this.#name,
      adds: Object.fromEntries(adds),
      notes: [
        ...this.verboseLines().map((line) => line.replace(/^\[.\]/, '')),
        ...(this.#ignored === '' ? [] : [`ignored, as it is not known: ${this.#ignored}`]),
      ],
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#informer?.[Symbol.asyncDispose]()
  }

  #read(found: ConfigMapData | undefined): void {
    const { metrics, log } = this.#dependencies
    const mistakes = this.#apply(found ?? none)
    metrics.configMapReads.add({ result: mistakes ? 'failure' : 'success' })
    if (mistakes) {
      this.#unusable = unusableLine(`configmap ${this.#name}`, mistakes)
      log.error({ mistakes }, `ConfigMap ${this.#name} cannot be used; the last good one stays`)
      return
    }
    this.#unusable = undefined
    void this.#keep(found ?? none)
    log.info(found ? `ConfigMap ${this.#name} is in force` : `there is no ConfigMap ${this.#name}`)
  }

  async #keep(good: ConfigMapData): Promise<void> {
    const { store, log } = this.#dependencies
    try {
      const bytes = Buffer.from(JSON.stringify(good))
      await putDocument(store, keyOf(this.#name), 'application/json', bytes)
    } catch (err) {
      logFailure(log, 'debug', { err }, "cannot store the hubs' ConfigMap")
    }
  }

  /** Its mistakes; `undefined`: it is in force. */
  #apply(data: ConfigMapData): readonly string[] | undefined {
    const { filters, recorded, log } = this.#dependencies
    const read = readConfigMap(data, filters.ownNames)
    if ('mistakes' in read) return read.mistakes
    this.#settings = read.settings
    recorded.add(read.settings.cacheAgents)
    filters.setAdditionalComponents(read.settings.components)
    const ignored = read.ignored.join(', ')
    if (ignored !== this.#ignored && ignored !== '') {
      log.warn(`ConfigMap ${this.#name}: unknown keys are ignored: ${ignored}`)
    }
    this.#ignored = ignored
    return undefined
  }

  #setState(state: InformerState): void {
    if (state.kind === 'failed') return
    const before = this.#refused
    this.#refused = undefined
    if (state.kind !== 'refused') return
    const { why, advice } = unreadable(state.code)
    const refused = `ConfigMap ${this.#name} cannot be read (${state.code}): ${why}${advice}; --hub-config-map= does without; what it said last stays in force`
    this.#refused = `[ ]${refused}`
    if (this.#refused !== before) this.#dependencies.log.warn(refused)
  }
}

function dataOf(bytes: Uint8Array): ConfigMapData {
  const { data, binaryData } = membersOf(bytes)
  return { data: recordOf(data), binaryData: recordOf(binaryData) }
}

const recordOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? { ...value } : {}

const none: ConfigMapData = { data: {}, binaryData: {} }

/** The last good one in the store. */
const keyOf = (name: string): ObjectKey => documentAt(hubIdentity, `/config-map/${name}`, 'json')

/** `undefined`: it is not stored, or cannot be read. */
function storedAt(
  store: ConfigMapDependencies['store'],
  key: ObjectKey,
): ConfigMapData | undefined {
  try {
    const stored = store.get(key)
    return typeof stored === 'object' ? dataOf(stored.object.bytes) : undefined
  } catch {
    return undefined
  }
}
