import { cursorOf } from '../../../api/codec/cursor.ts'
import type { Filter, FilterDefinition } from '../filter.ts'
import type { Inputs } from '../inputs.ts'
import { isFields, printed } from './definition.ts'
import { reasonOf } from './mistakes.ts'

/** A sample node in a pool. */
const sample: Inputs = {
  nodeName: 'probe',
  node: { name: 'probe', labels: { 'kubernetes.io/hostname': 'probe' }, annotations: {} },
  pool: { name: 'probes', type: 'Edge', hostNetwork: false, labels: {}, annotations: {} },
  poolNodes: ['probe'],
  topologies: {},
  serviceAddresses: ['10.96.0.1'],
  hubAddress: { host: '169.254.2.1', port: 10268, forService: true },
  propagation: 'off',
}

/**
 * Creates the filter for a sample node, and calls it with a sample object. Returns what is wrong
 * with either, or `undefined`. The filter may throw, since the object has only a name, but it must
 * not return anything other than a decision. `file` is its module.
 */
export function whyUnusable(definition: FilterDefinition, file: string): string | undefined {
  let made: unknown
  try {
    made = definition.create(sample, () => undefined)
  } catch (cause) {
    return `create throws for a sample node: ${reasonOf(cause, file)}`
  }
  if (made === undefined) return undefined
  if (typeof made !== 'function')
    return `create must return a function or undefined, not ${printed(made)}`
  const decision = sampleDecision(made as Filter, definition)
  if (decision === threw || isDecision(decision)) return undefined
  if (decision instanceof Promise) {
    decision.catch(() => undefined)
    return 'the filter is asynchronous: it must return its decision at once'
  }
  return `the filter must return 'leave', 'withhold' or a list of edits, not ${printed(decision)}`
}

const threw = Symbol('threw')

function sampleDecision(filter: Filter, { rules }: FilterDefinition): unknown {
  const gvk = { group: rules[0]?.group ?? '', version: 'v1', kind: 'Probe' }
  const text =
    '{"kind":"Probe","apiVersion":"v1","metadata":{"namespace":"default","name":"probe"}}'
  const probe = { namespace: 'default', name: 'probe', uid: '', resourceVersion: '' }
  try {
    return filter(cursorOf('json', gvk, { ...probe, bytes: Buffer.from(text) }))
  } catch {
    return threw
  }
}

const isDecision = (value: unknown): boolean =>
  value === 'leave' || value === 'withhold' || (Array.isArray(value) && value.every(isEdit))

const isEdit = (value: unknown): boolean =>
  isFields(value) &&
  Array.isArray(value['path']) &&
  (value['op'] === 'set' ||
    value['op'] === 'remove' ||
    (value['op'] === 'each' && typeof value['change'] === 'function'))
