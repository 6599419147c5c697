import { isLabelKey, isLabelValue } from './names.ts'

/** A selector that cannot be parsed; the message says which part, and why. */
export class MalformedSelector extends Error {
  readonly code = 'MALFORMED_SELECTOR'
}

export interface LabelRequirement {
  readonly key: string
  /** `=` and `==` are `in` with one value, `!=` is `notin` with one. */
  readonly operator: 'in' | 'notin' | 'exists' | '!' | 'gt' | 'lt'
  /** Sorted, each once; empty for `exists` and `!`, one decimal number for `gt` and `lt`. */
  readonly values: readonly string[]
}

/** All must hold; none selects everything. */
export type LabelSelector = readonly LabelRequirement[]

export interface FieldRequirement {
  readonly field: string
  readonly operator: '=' | '!='
  /** Without escapes. */
  readonly value: string
}

/** All must hold; none selects everything. */
export type FieldSelector = readonly FieldRequirement[]

/**
 * Requirements sorted by key, as apimachinery pkg/labels/selector.go sorts them. Throws
 * `MalformedSelector`.
 */
export function parseLabelSelector(text: string): LabelSelector {
  if (trimmed(text) === '') return []
  return partsOf(text)
    .map((part) => parseRequirement(trimmed(part)))
    .toSorted((a, b) => order(a.key, b.key))
}

/** Whether the selector matches an object; `read` returns a label by key. */
export const matchesLabels = (
  selector: LabelSelector,
  read: (key: string) => string | undefined,
): boolean => selector.every((requirement) => holds(requirement, read(requirement.key)))

function holds({ operator, values }: LabelRequirement, value: string | undefined): boolean {
  switch (operator) {
    case 'exists':
      return value !== undefined
    case '!':
      return value === undefined
    case 'in':
      return value !== undefined && values.includes(value)
    case 'notin':
      return value === undefined || !values.includes(value)
    case 'gt':
    case 'lt': {
      const [found, bound] = [integer(value), integer(values[0])]
      if (found === undefined || bound === undefined) return false
      return operator === 'gt' ? found > bound : found < bound
    }
  }
}

/** One text for label selectors that mean the same. Throws `MalformedSelector`. */
export const canonicalLabelSelector = (text: string): string =>
  [...labelTerms(text)].toSorted(order).join(',')

/** The texts of its requirements. */
const labelTerms = (text: string): Set<string> =>
  new Set(parseLabelSelector(text).map(textOfRequirement))

function textOfRequirement({ key, operator, values }: LabelRequirement): string {
  const [only = ''] = values
  switch (operator) {
    case 'exists':
      return key
    case '!':
      return `!${key}`
    case 'gt':
      return `${key}>${only}`
    case 'lt':
      return `${key}<${only}`
    case 'in':
      return values.length === 1 ? `${key}=${only}` : `${key} in (${values.join(',')})`
    case 'notin':
      return values.length === 1 ? `${key}!=${only}` : `${key} notin (${values.join(',')})`
  }
}

/**
 * Parses as apimachinery pkg/fields/selector.go: commas are "and", empty terms are ignored. Throws
 * `MalformedSelector`.
 */
export function parseFieldSelector(text: string): FieldSelector {
  return splitTerms(text)
    .filter((term) => term !== '')
    .toSorted(order)
    .map((term) => {
      const match = /!=|==|=/.exec(term)
      if (!match) {
        throw new MalformedSelector(`invalid selector: '${text}'; can't understand '${term}'`)
      }
      return {
        field: term.slice(0, match.index),
        operator: match[0] === '!=' ? '!=' : '=',
        value: unescapeValue(term.slice(match.index + match[0].length)),
      }
    })
}

/** Whether the selector matches an object; `read` returns a field, and a missing one is empty. */
export const matchesFields = (
  selector: FieldSelector,
  read: (path: string) => string | undefined,
): boolean =>
  selector.every(
    ({ field, operator, value }) => ((read(field) ?? '') === value) === (operator === '='),
  )

/** One text for field selectors that mean the same. Throws `MalformedSelector`. */
export const canonicalFieldSelector = (text: string): string =>
  [...fieldTerms(text)].toSorted(order).join(',')

const fieldTerms = (text: string): Set<string> =>
  new Set(
    parseFieldSelector(text).map(
      ({ field, operator, value }) => field + operator + escapeValue(value),
    ),
  )

/** The two selectors of a list or watch. */
export interface SelectorPair {
  readonly labelSelector: string
  readonly fieldSelector: string
}

/**
 * Whether `wider` certainly selects everything that `narrower` selects: each of its requirements is
 * one of `narrower`. Throws `MalformedSelector`.
 */
export const covers = (wider: SelectorPair, narrower: SelectorPair): boolean =>
  labelTerms(wider.labelSelector).isSubsetOf(labelTerms(narrower.labelSelector)) &&
  fieldTerms(wider.fieldSelector).isSubsetOf(fieldTerms(narrower.fieldSelector))

/**
 * Whether an object may leave a collection of these selectors without being deleted, which a name
 * or namespace in a selector cannot cause.
 */
export const isSelective = ({ labelSelector, fieldSelector }: SelectorPair): boolean =>
  labelSelector !== '' || !/^(metadata\.name(space)?=([^,\\]|\\.)*(,|$))*$/.test(fieldSelector)

/** The field selector for an object by name, with the name escaped. */
export const selectorOfName = (name: string): string => `metadata.name=${escapeValue(name)}`

const escapeValue = (value: string): string => value.replaceAll(/[\\,=]/g, '\\$&')

function splitTerms(text: string): string[] {
  const terms: string[] = []
  let start = 0
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === ',') {
      terms.push(text.slice(start, at))
      start = at + 1
    }
  }
  return [...terms, text.slice(start)]
}

function unescapeValue(text: string): string {
  return text.replace(/\\(.?)|[,=]/gsu, (found, escaped: string | undefined) => {
    if (escaped === undefined) {
      // The server prints the character code.
      throw new MalformedSelector(
        `invalid field selector: unescaped character in value: ${found.charCodeAt(0)}`,
      )
    }
    if (escaped !== '' && '\\,='.includes(escaped)) return escaped
    throw new MalformedSelector(`invalid field selector: invalid escape sequence: ${found}`)
  })
}

/** Without blanks of label selectors around it. */
const trimmed = (text: string): string => /[^ \t\r\n](?:[^]*[^ \t\r\n])?/.exec(text)?.[0] ?? ''

/** The parts between commas that are not in parentheses. */
function partsOf(text: string): readonly string[] {
  const parts = ['']
  for (const [piece] of text.matchAll(/,|\([^()]*\)|[^,(]+|\(/g)) {
    if (piece === ',') parts.push('')
    else parts.push(`${parts.pop()}${piece}`)
  }
  return parts
}

const presence = /^(!?)[ \t\r\n]*([^=!(),<> \t\r\n]+)$/
const comparison = /^([^=!(),<> \t\r\n]+)[ \t\r\n]*(==|=|!=|>|<)[ \t\r\n]*([^=!(),<> \t\r\n]*)$/
const membership = /^([^=!(),<> \t\r\n]+)[ \t\r\n]+(in|notin)[ \t\r\n]*\(([^()]*)\)$/

const comparisons: Readonly<Record<string, LabelRequirement['operator']>> = {
  '=': 'in',
  '==': 'in',
  '!=': 'notin',
  '>': 'gt',
  '<': 'lt',
}

function parseRequirement(part: string): LabelRequirement {
  const [, absent, only] = presence.exec(part) ?? []
  if (only !== undefined)
    return checked(part, { key: only, operator: absent === '' ? 'exists' : '!', values: [] })
  const [, compared, sign = '', value = ''] = comparison.exec(part) ?? []
  const operator = comparisons[sign]
  if (compared !== undefined && operator !== undefined)
    return checked(part, { key: compared, operator, values: [value] })
  const [, key, set, listed = ''] = membership.exec(part) ?? []
  if (key === undefined) throw malformed(part, 'it is no requirement')
  const values = [...new Set(listed.split(',').map(trimmed))].toSorted(order)
  return checked(part, { key, operator: set === 'in' ? 'in' : 'notin', values })
}

/** The requirement, if its key and its values can be those of a label. */
function checked(part: string, requirement: LabelRequirement): LabelRequirement {
  const { key, operator, values } = requirement
  if (!isLabelKey(key)) throw malformed(part, `${JSON.stringify(key)} is no key of a label`)
  const wrong = values.find((value) => !isLabelValue(value))
  if (wrong !== undefined) throw malformed(part, `${JSON.stringify(wrong)} is no value of a label`)
  if ((operator === 'gt' || operator === 'lt') && integer(values[0]) === undefined)
    throw malformed(part, `${JSON.stringify(values[0])} is no integer`)
  return requirement
}

const malformed = (part: string, why: string): MalformedSelector =>
  new MalformedSelector(`unable to parse requirement ${JSON.stringify(part)}: ${why}`)

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** Go's strconv.ParseInt with 64 bits. */
function integer(text: string | undefined): bigint | undefined {
  if (text === undefined || !/^[+-]?[0-9]{1,64}$/.test(text)) return undefined
  const value = BigInt(text.replace(/^\+/, ''))
  return value === BigInt.asIntN(64, value) ? value : undefined
}
