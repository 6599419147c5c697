import { didYouMean } from '../../../config/suggestion.ts'
import { showing, type FilterDefinition, type Filter } from '../filter.ts'
import { unknownInputs, type Inputs } from '../inputs.ts'
import { reasonOf, type Mistakes } from './mistakes.ts'
import { cursorOf } from '../../../api/codec/cursor.ts'

type Fields = Readonly<Record<string, unknown>>

const keys = ['name', 'revision', 'rules', 'onError', 'needs', 'awaits', 'create']
const verbs: readonly string[] = showing
const ruleKeys = ['components', 'group', 'resources', 'verbs', 'only']

const nameForm = /^[a-z][a-z0-9-]{0,62}$/
/** In the form that `componentOf` makes of a User-Agent. */
const componentForm = /^[a-z0-9][a-z0-9._-]{0,127}$/
const groupForm = /^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$/
/** The core group's apiVersion is only a version. */
const versionForm = /^v\d+((alpha|beta)\d+)?$/
const resourceForm = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/

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
  checkKeys(value, keys, wrong)
  checkName(value['name'], wrong)
  if (!['string', 'undefined'].includes(typeof value['revision']))
    wrong('revision must be a string')
  checkRules(value['rules'], where, mistakes)
  checkOnError(value['onError'], wrong)
  checkInputs('needs', value['needs'], Object.keys(unknownInputs), wrong)
  if (value['awaits'] !== undefined) {
    const needs = Array.isArray(value['needs']) ? value['needs'].map(String) : []
    checkInputs('awaits', value['awaits'], needs, wrong)
  }
  if (typeof value['create'] !== 'function') wrong('create must be a function')
  return mistakes.all.length > before ? undefined : (value as unknown as FilterDefinition)
}

/** Reports each unknown key, with a similar known one. */
function checkKeys(value: Fields, known: readonly string[], wrong: (what: string) => void): void {
  for (const key of Object.keys(value)) {
    if (!known.includes(key)) wrong(`${key} is not known${didYouMean(key, known)}`)
  }
}

function checkName(name: unknown, wrong: (what: string) => void): void {
  if (typeof name !== 'string' || !nameForm.test(name))
    wrong(`name must be lower-case letters, digits and dashes, at most 63, not ${printed(name)}`)
}

function checkOnError(onError: unknown, wrong: (what: string) => void): void {
  if (onError !== 'pass' && onError !== 'withhold')
    wrong(`onError must be pass or withhold, not ${printed(onError)}`)
}

function checkRules(rules: unknown, where: string, mistakes: Mistakes): void {
  if (!Array.isArray(rules) || rules.length === 0) {
    mistakes.say(where, 'rules must be a list of at least one rule')
    return
  }
  for (const [at, rule] of rules.entries()) {
    const wrong = (what: string): void => mistakes.say(`${where}.rules[${at}]`, what)
    if (!isFields(rule)) {
      wrong('is no rule')
      continue
    }
    checkKeys(rule, ruleKeys, wrong)
    checkRule(rule, wrong)
    checkOnly(rule['only'], wrong)
  }
}

function checkOnly(only: unknown, wrong: (what: string) => void): void {
  if (only === undefined) return
  const names = isFields(only) ? [only['namespace'], only['name']] : []
  if (names.length === 0 || names.some((name) => typeof name !== 'string'))
    wrong(`only must be a namespace and a name, not ${printed(only)}`)
}

function checkRule(rule: Fields, wrong: (what: string) => void): void {
  checkWords('components', rule['components'], componentForm, wrong)
  checkWords('resources', rule['resources'], resourceForm, wrong)
  const areWords = checkWords('verbs', rule['verbs'], resourceForm, wrong)
  const { group } = rule
  const isGroup = typeof group === 'string' && groupForm.test(group) && !versionForm.test(group)
  if (!isGroup)
    wrong(`group must be the name of an API group, empty for the core, not ${printed(group)}`)
  const unknown = (areWords ? (rule['verbs'] as string[]) : []).filter(
    (verb) => !verbs.includes(verb),
  )
  for (const verb of unknown) wrong(`verbs: ${verb} is no verb${didYouMean(verb, verbs)}`)
}

function checkWords(
  key: string,
  value: unknown,
  form: RegExp,
  wrong: (what: string) => void,
): boolean {
  if (!Array.isArray(value) || value.length === 0) {
    wrong(`${key} must be a list of at least one name`)
    return false
  }
  const bad = value.filter((word) => typeof word !== 'string' || !form.test(word))
  for (const word of bad) wrong(`${key}: ${printed(word)} is no name in lower case`)
  return bad.length === 0
}

function checkInputs(
  key: string,
  value: unknown,
  known: readonly string[],
  wrong: (what: string) => void,
): void {
  if (!Array.isArray(value)) {
    wrong(`${key} must be a list (it may be empty)`)
    return
  }
  for (const name of value) {
    if (typeof name === 'string' && known.includes(name)) continue
    const of = key === 'needs' ? 'is not an input of filters' : 'is not among its needs'
    wrong(`${key}: ${printed(name)} ${of}${didYouMean(String(name), known)}`)
  }
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
