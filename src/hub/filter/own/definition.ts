import { didYouMean } from '../../../config/suggestion.ts'
import { showing, type FilterDefinition, type Filter } from '../filter.ts'
import { unknownInputs, type Inputs } from '../inputs.ts'
import { reasonOf, type Mistakes } from './mistakes.ts'
import { cursorOf } from '../../../api/codec/cursor.ts'

type Fields = Readonly<Record<string, unknown>>

const verbs: readonly string[] = showing

/** What a member has to be. */
interface Form {
  readonly fits: (value: unknown) => boolean
  readonly what: string
}

const isWord =
  (form: RegExp) =>
  (value: unknown): boolean =>
    typeof value === 'string' && form.test(value)

const words = (form: RegExp): Form => ({
  fits: (value) => Array.isArray(value) && value.length > 0 && value.every(isWord(form)),
  what: 'a list of at least one name in lower case',
})

const resourceForm = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
const groupForm = /^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$/
/** The core group's apiVersion is only a version. */
const versionForm = /^v\d+((alpha|beta)\d+)?$/

const isText = (value: unknown): boolean => typeof value === 'string'

const ofRule: Readonly<Record<string, Form>> = {
  // In the form that `componentOf` makes of a User-Agent.
  components: words(/^[a-z0-9][a-z0-9._-]{0,127}$/),
  group: {
    fits: (value) => isWord(groupForm)(value) && !isWord(versionForm)(value),
    what: 'the name of an API group, empty for the core',
  },
  resources: words(resourceForm),
  verbs: words(resourceForm),
  only: {
    fits: (value) =>
      value === undefined || (isFields(value) && [value['namespace'], value['name']].every(isText)),
    what: 'a namespace and a name',
  },
}

const ofDefinition: Readonly<Record<string, Form>> = {
  name: {
    fits: isWord(/^[a-z][a-z0-9-]{0,62}$/),
    what: 'lower-case letters, digits and dashes, at most 63',
  },
  revision: { fits: (value) => value === undefined || isText(value), what: 'a string' },
  rules: {
    fits: (value) => Array.isArray(value) && value.length > 0,
    what: 'a list of at least one rule',
  },
  onError: {
    fits: (value) => value === 'pass' || value === 'withhold',
    what: 'pass or withhold',
  },
  needs: { fits: Array.isArray, what: 'a list (it may be empty)' },
  awaits: { fits: (value) => value === undefined || Array.isArray(value), what: 'a list' },
  create: { fits: (value) => typeof value === 'function', what: 'a function' },
}

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The definition, where it has no mistake. The result of `create` is checked when it is called. */
export function checkedDefinition(
  value: unknown,
  where: string,
  mistakes: Mistakes,
): FilterDefinition | undefined {
  const before = mistakes.all.length
  const wrong = (what: string): void => mistakes.say(where, what)
  if (!isFields(value)) {
    wrong('is no filter definition')
    return undefined
  }
  checkForms(value, ofDefinition, wrong)
  for (const [at, rule] of itemsOf(value['rules']).entries()) {
    const wrongHere = (what: string): void => mistakes.say(`${where}.rules[${at}]`, what)
    if (!isFields(rule)) wrongHere('is no rule')
    else {
      checkForms(rule, ofRule, wrongHere)
      checkItems(rule, 'verbs', verbs, 'is no verb', wrongHere)
    }
  }
  checkItems(value, 'needs', Object.keys(unknownInputs), 'is not an input of filters', wrong)
  checkItems(value, 'awaits', itemsOf(value['needs']).map(String), 'is not among its needs', wrong)
  return mistakes.all.length > before ? undefined : (value as unknown as FilterDefinition)
}

const itemsOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** Reports each member of another form, and each unknown one, with a similar known one. */
function checkForms(
  value: Fields,
  forms: Readonly<Record<string, Form>>,
  wrong: (what: string) => void,
): void {
  const known = Object.keys(forms)
  for (const key of Object.keys(value))
    if (!known.includes(key)) wrong(`${key} is not known${didYouMean(key, known)}`)
  for (const [key, { fits, what }] of Object.entries(forms))
    if (!fits(value[key])) wrong(`${key} must be ${what}, not ${printed(value[key])}`)
}

/** Reports each item of a list that is none of the known ones, with a similar one. */
function checkItems(
  value: Fields,
  key: string,
  known: readonly string[],
  isNone: string,
  wrong: (what: string) => void,
): void {
  for (const item of itemsOf(value[key]))
    if (!known.includes(item as string))
      wrong(`${key}: ${printed(item)} ${isNone}${didYouMean(String(item), known)}`)
}

/** A value for a message: short, whatever it is. */
export function printed(value: unknown): string {
  if (value === undefined) return 'absent'
  const text = typeof value === 'function' ? 'a function' : (jsonOf(value) ?? typeof value)
  return text.length > 60 ? `${text.slice(0, 57)}...` : text
}

function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    // A bigint, or a circular value.
    return undefined
  }
}

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
