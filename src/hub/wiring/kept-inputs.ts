import { StateFile } from '../../base/state-file.ts'
import { readOwnFile } from '../../base/own-file.ts'
import type { Inputs, NodeFacts, PoolFacts } from '../filter/inputs.ts'

/** The inputs of filters that come from the cluster. */
export type ClusterInputs = Pick<Inputs, ClusterInputName> & Required<Pick<Inputs, 'untold'>>

export type ClusterInputName = (typeof clusterInputNames)[number]

export const clusterInputNames = [
  'node',
  'pool',
  'poolNodes',
  'topologies',
  'serviceAddresses',
] as const

const nothing: ClusterInputs = {
  node: undefined,
  pool: undefined,
  poolNodes: undefined,
  topologies: undefined,
  serviceAddresses: undefined,
  untold: [],
}

/**
 * The last inputs, on the disk before filters act by them: after a crash the hub knows the inputs
 * of its earlier answers, even if the cluster no longer has them.
 */
export class StoredInputs implements AsyncDisposable {
  readonly #file: StateFile
  #latest: ClusterInputs

  constructor(path: string, nodeName: string) {
    this.#latest = readStored(path, nodeName)
    this.#file = new StateFile(path, () => JSON.stringify({ nodeName, ...this.#latest }))
  }

  get latest(): ClusterInputs {
    return this.#latest
  }

  /**
   * Resolves when these or later inputs are on the disk. Rejects where the write failed; they count
   * all the same.
   */
  keep(inputs: ClusterInputs): Promise<void> {
    this.#latest = inputs
    return this.#file.write()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#file[Symbol.asyncDispose]()
  }
}

/**
 * An unreadable file, or one of another node, counts as none; damaged parts of it count as unknown.
 */
function readStored(path: string, nodeName: string): ClusterInputs {
  try {
    const kept = JSON.parse(String(readOwnFile(path))) as Partial<Record<string, unknown>>
    const { node, pool, poolNodes, topologies, serviceAddresses } = kept
    const names: readonly unknown[] = Array.isArray(kept['untold']) ? kept['untold'] : []
    const untold = clusterInputNames.filter((name) => names.includes(name))
    const known = isNode(node) ? node : undefined
    if ((kept['nodeName'] ?? known?.name) !== nodeName) return nothing
    return {
      node: known?.name === nodeName ? known : undefined,
      pool: pool === null || isPool(pool) ? pool : undefined,
      poolNodes: poolNodes === null || isNames(poolNodes) ? poolNodes : undefined,
      topologies: isTexts(topologies) ? topologies : undefined,
      serviceAddresses: isNames(serviceAddresses) ? serviceAddresses : undefined,
      untold,
    }
  } catch {
    return nothing
  }
}

const isNode = (value: unknown): value is NodeFacts =>
  isRecord(value) &&
  typeof value['name'] === 'string' &&
  isTexts(value['labels']) &&
  isTexts(value['annotations'])

const isPool = (value: unknown): value is PoolFacts =>
  isNode(value) &&
  'type' in value &&
  typeof value.type === 'string' &&
  (!('hostNetwork' in value) || typeof value.hostNetwork === 'boolean')

const isNames = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string')

const isTexts = (value: unknown): value is Readonly<Record<string, string>> =>
  isRecord(value) && Object.values(value).every((each) => typeof each === 'string')

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
