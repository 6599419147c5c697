/** A selector that cannot be parsed; the message is the API server's. */
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
  const tokens = new Tokens(text)
  const requirements: LabelRequirement[] = []
  if (tokens.isAtEnd()) return requirements
  if (!tokens.isAtRequirement()) throw tokens.unexpected("!, identifier, or 'end of string'")
  for (;;) {
    requirements.push(parseRequirement(tokens))
    if (tokens.isAtEnd()) break
    if (!tokens.accept(',')) throw tokens.unexpected("',' or 'end of string'")
    if (!tokens.isAtRequirement()) throw tokens.unexpected("identifier after ','")
  }
  return requirements.toSorted((a, b) => order(a.key, b.key))
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
      ({ field, operator, value }) => field + operator + value.replace(/[\\,=]/g, '\\$&'),
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
  labelSelector !== '' || !/^(metadata\.name(space)?=[^,]*(,|$))*$/.test(fieldSelector)

/** The field selector for an object by name, with the name escaped. */
export const selectorOfName = (name: string): string =>
  `metadata.name=${name.replaceAll(/[\\,=]/g, '\\$&')}`

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

const symbols = new Set(['(', ')', ',', '!', '=', '==', '!=', '<', '>'])

/** The tokens of a label selector: symbols as they are written, and words. */
class Tokens {
  readonly #tokens: readonly string[]
  #at = 0

  constructor(text: string) {
    this.#tokens = text.match(/==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+/g) ?? []
  }
  isAtEnd(): boolean {
    return this.#at >= this.#tokens.length
  }
  isAtWord(): boolean {
    return !this.isAtEnd() && !symbols.has(this.peek())
  }
  isAtRequirement(): boolean {
    return this.isAtWord() || this.peek() === '!'
  }
  peek(): string {
    return this.#tokens[this.#at] ?? ''
  }
  next(): string {
    const token = this.peek()
    this.#at++
    return token
  }
  accept(symbol: string): boolean {
    if (this.peek() !== symbol) return false
    this.#at++
    return true
  }
  unexpected(expected: string): MalformedSelector {
    return new MalformedSelector(`found '${this.peek()}', expected: ${expected}`)
  }
}

function parseRequirement(tokens: Tokens): LabelRequirement {
  try {
    const absent = tokens.accept('!')
    if (!tokens.isAtWord()) throw tokens.unexpected('identifier')
    const key = tokens.next()
    refuse('<nil>', key, flawsOfKey(key))
    if (absent) return { key, operator: '!', values: [] }
    if (tokens.isAtEnd() || tokens.peek() === ',') return { key, operator: 'exists', values: [] }
    const operator = parseOperator(tokens)
    const values = operator.takesList ? parseValues(tokens) : [parseValue(tokens)]
    checkValues(key, operator.meaning, values)
    return { key, operator: operator.meaning, values }
  } catch (cause) {
    if (!(cause instanceof MalformedSelector)) throw cause
    throw new MalformedSelector(`unable to parse requirement: ${cause.message}`, { cause })
  }
}

interface BinaryOperator {
  readonly meaning: 'in' | 'notin' | 'gt' | 'lt'
  readonly takesList: boolean
}

const operators = new Map<string, BinaryOperator>([
  ['in', { meaning: 'in', takesList: true }],
  ['notin', { meaning: 'notin', takesList: true }],
  ['=', { meaning: 'in', takesList: false }],
  ['==', { meaning: 'in', takesList: false }],
  ['!=', { meaning: 'notin', takesList: false }],
  ['>', { meaning: 'gt', takesList: false }],
  ['<', { meaning: 'lt', takesList: false }],
])

function parseOperator(tokens: Tokens): BinaryOperator {
  const operator = operators.get(tokens.peek())
  if (!operator) throw tokens.unexpected('in, notin, =, ==, !=, gt, lt')
  tokens.next()
  return operator
}

function parseValue(tokens: Tokens): string {
  if (tokens.isAtEnd() || tokens.peek() === ',') return ''
  if (!tokens.isAtWord()) throw tokens.unexpected('identifier')
  return tokens.next()
}

/** `(a,b)`. Empty parentheses, and a comma without a value on one side, mean the empty value. */
function parseValues(tokens: Tokens): string[] {
  if (!tokens.accept('(')) throw new MalformedSelector(`found '${tokens.peek()}' expected: '('`)
  const values = new Set<string>()
  if (tokens.accept(')')) return ['']
  if (!tokens.isAtWord() && tokens.peek() !== ',') throw tokens.unexpected("',', ')' or identifier")
  for (;;) {
    if (tokens.isAtWord()) {
      values.add(tokens.next())
      if (tokens.peek() !== ',' && tokens.peek() !== ')') throw tokens.unexpected("',' or ')'")
    } else if (tokens.accept(',')) {
      if (values.size === 0 || tokens.peek() === ')' || tokens.accept(',')) values.add('')
    } else {
      throw tokens.unexpected("',', or identifier")
    }
    if (tokens.accept(')')) return [...values].toSorted(order)
  }
}

function checkValues(
  key: string,
  operator: BinaryOperator['meaning'],
  values: readonly string[],
): void {
  const [bound] = values
  if ((operator === 'gt' || operator === 'lt') && integer(bound) === undefined) {
    refuse('values[0]', bound ?? '', ["for 'Gt', 'Lt' operators, the value must be an integer"])
  }
  values.forEach((value, at) => refuse(`values[${at}][${key}]`, value, flawsOfValue(value)))
}

function refuse(field: string, value: string, flaws: readonly string[]): void {
  if (flaws.length === 0) return
  throw new MalformedSelector(
    `${field}: Invalid value: ${JSON.stringify(value)}: ${flaws.join('; ')}`,
  )
}

// Errors of keys and values, worded as in apimachinery pkg/util/validation/validation.go.

const allowed =
  "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
const nameForm = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'
const domainForm = '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'
const isName = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/
const isDomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

const badName = `must ${allowed} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${nameForm}')`
const badValue = `a valid label must be an empty string or ${allowed} (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(${nameForm})?')`
const badDomain = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${domainForm}')`

function flawsOfKey(key: string): string[] {
  const parts = key.split('/')
  if (parts.length > 2) {
    return [
      `a qualified name ${badName} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ]
  }
  const name = parts.at(-1) ?? ''
  const flaws = parts.length === 2 ? flawsOfPrefix(parts[0] ?? '') : []
  if (name === '') flaws.push('name part must be non-empty')
  else if (name.length > 63) flaws.push('name part must be no more than 63 bytes')
  if (!isName.test(name)) flaws.push(`name part ${badName}`)
  return flaws
}

function flawsOfPrefix(prefix: string): string[] {
  if (prefix === '') return ['prefix part must be non-empty']
  const flaws = prefix.length > 253 ? ['prefix part must be no more than 253 bytes'] : []
  return isDomain.test(prefix) ? flaws : [...flaws, `prefix part ${badDomain}`]
}

function flawsOfValue(value: string): string[] {
  const flaws = value.length > 63 ? ['must be no more than 63 bytes'] : []
  return value === '' || isName.test(value) ? flaws : [...flaws, badValue]
}

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** Go's strconv.ParseInt with 64 bits. */
function integer(text: string | undefined): bigint | undefined {
  if (text === undefined || !/^[+-]?[0-9]{1,64}$/.test(text)) return undefined
  const value = BigInt(text.replace(/^\+/, ''))
  return value === BigInt.asIntN(64, value) ? value : undefined
}
