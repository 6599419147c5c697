import { cursorOf } from '../../../api/codec/cursor.ts'
import type { Filter, FilterDefinition } from '../filter.ts'
import type { Inputs } from '../inputs.ts'
import { isFields, printed } from './definition.ts'
import { reasonOf } from './mistakes.ts'

/** A node as there could be one, in a pool. */
const sample: Inputs = {
  nodeName: 'probe',
  node: { name: 'probe', labels: { 'kubernetes.io/hostname': 'probe' }, annotations: {} },
  pool: { name: 'probes', type: 'Edge', hostNetwork: false, labels: {}, annotations: {} },
  poolNodes: ['probe'],
  topologies: {},
  hubAddress: { host: '169.254.2.1', port: 10268 },
  propagation: 'off',
}

/**
 * Makes the filter for a made-up node and has it judge a made-up object: what is wrong with either,
 * or `undefined`. A filter may throw at such an object, which has nothing but a name; what it must
 * not do is to answer something else than filters answer. `file` is its module.
 */
export function whyUnusable(definition: FilterDefinition, file: string): string | undefined {
  let made: unknown
  try {
    made = definition.create(sample, () => undefined)
  } catch (cause) {
    return `create throws for a made-up node: ${reasonOf(cause, file)}`
  }
  if (made === undefined) return undefined
  const filter = filterIn(made)
  if (!filter)
    return `create must return a function, { filter, before } or undefined, not ${printed(made)}`
  const judgement = judged(filter, definition)
  if (judgement === threw || isJudgement(judgement)) return undefined
  if (judgement instanceof Promise) {
    judgement.catch(() => undefined)
    return 'the filter is asynchronous: it must answer at once'
  }
  return `the filter must answer 'leave', 'withhold' or a list of edits, not ${printed(judgement)}`
}

function filterIn(made: unknown): Filter | undefined {
  const isSettling = isFields(made) && typeof made['before'] === 'function'
  const filter = isSettling ? made['filter'] : made
  return typeof filter === 'function' ? (filter as Filter) : undefined
}

const threw = Symbol('threw')

function judged(filter: Filter, { rules }: FilterDefinition): unknown {
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

const isJudgement = (value: unknown): boolean =>
  value === 'leave' || value === 'withhold' || (Array.isArray(value) && value.every(isEdit))

const isEdit = (value: unknown): boolean =>
  isFields(value) &&
  Array.isArray(value['path']) &&
  (value['op'] === 'set' ||
    value['op'] === 'remove' ||
    (value['op'] === 'each' && typeof value['change'] === 'function'))
