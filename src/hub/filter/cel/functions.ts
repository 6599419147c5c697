import { charactersAStep, type Evaluation } from './evaluation.ts'
import { boundText, inRange, itemsOf } from './operators.ts'
import { Failure, listOf, MadeList, typeOf, type Value } from './value.ts'

/** `values`: the receiver, if any, and the arguments, none of which is a failure. */
type Call = (values: readonly Value[], evaluation: Evaluation) => Value

const wrong = (name: string, values: readonly Value[]): Failure =>
  new Failure(`no such overload: ${name}(${values.map(typeOf).join(', ')})`)

function onTexts(
  name: string,
  act: (texts: readonly string[], evaluation: Evaluation) => Value,
): Call {
  return (values, evaluation) => {
    if (!values.every((value) => typeof value === 'string')) return wrong(name, values)
    evaluation.spendOnText(...values)
    return act(values, evaluation)
  }
}

const size: Call = ([value = null], evaluation) => {
  if (typeof value === 'string') {
    evaluation.spendOnText(value)
    let characters = 0n
    for (const _ of value) characters++
    return characters
  }
  const length = listOf(value)?.length ?? evaluation.keysOf(value)?.length
  return length === undefined ? wrong('size', [value]) : BigInt(length)
}

const split: Call = ([text = null, separator = null, most = -1n], evaluation) => {
  if (typeof text !== 'string' || typeof separator !== 'string' || typeof most !== 'bigint')
    return wrong('split', [text, separator, most])
  evaluation.spend(1 + text.length)
  const parts = separator === '' ? Array.from(text) : text.split(separator)
  if (most < 0n || parts.length <= most) return new MadeList(parts)
  if (most === 0n) return new MadeList([])
  const kept = parts.slice(0, Number(most) - 1)
  return new MadeList([...kept, parts.slice(kept.length).join(separator)])
}

const join: Call = ([value = null, separator = ''], evaluation) => {
  const list = listOf(value)
  if (!list || typeof separator !== 'string') return wrong('join', [value, separator])
  evaluation.spend(list.length)
  const parts = [...itemsOf(list)]
  if (!parts.every((part) => typeof part === 'string')) return wrong('join', [value, separator])
  const length = parts.reduce((sum, part) => sum + part.length + separator.length, 0)
  evaluation.spend(length / charactersAStep)
  return boundText(length, () => parts.join(separator))
}

function string([value = null]: readonly Value[]): Value {
  if (value === Infinity) return '+Inf'
  if (value === -Infinity) return '-Inf'
  const isPlain = ['string', 'bigint', 'number', 'boolean'].includes(typeof value)
  return isPlain ? String(value as string) : wrong('string', [value])
}

function int([value = null]: readonly Value[]): Value {
  if (typeof value === 'bigint') return value
  if (typeof value === 'number' && Number.isFinite(value)) return inRange(BigInt(Math.trunc(value)))
  if (typeof value === 'string' && /^[+-]?\d{1,19}$/.test(value)) return inRange(BigInt(value))
  return wrong('int', [value])
}

function double([value = null]: readonly Value[]): Value {
  if (typeof value === 'number') return value
  if (typeof value === 'bigint') return Number(value)
  const isNumber = typeof value === 'string' && /^[+-]?\d{1,30}(\.\d{1,30})?([eE][+-]?\d{1,3})?$/
  return isNumber && isNumber.test(value) ? Number(value) : wrong('double', [value])
}

function bool([value = null]: readonly Value[]): Value {
  if (typeof value === 'boolean') return value
  if (value === 'true' || value === 'True' || value === 'TRUE' || value === 't' || value === '1')
    return true
  if (value === 'false' || value === 'False' || value === 'FALSE' || value === 'f' || value === '0')
    return false
  return wrong('bool', [value])
}

/** A function or method with the number of its arguments besides the receiver. */
export interface KnownFunction {
  readonly call: Call
  readonly fewest: number
  readonly most: number
}

const taking = (fewest: number, call: Call, most = fewest): KnownFunction => ({
  call,
  fewest,
  most,
})

export const functions: Readonly<Record<string, KnownFunction>> = {
  size: taking(1, size),
  string: taking(1, string),
  int: taking(1, int),
  double: taking(1, double),
  bool: taking(1, bool),
  dyn: taking(1, ([value = null]) => value),
}

export const methods: Readonly<Record<string, KnownFunction>> = {
  size: taking(0, size),
  startsWith: taking(
    1,
    onTexts('startsWith', ([text = '', start = '']) => text.startsWith(start)),
  ),
  endsWith: taking(
    1,
    onTexts('endsWith', ([text = '', end = '']) => text.endsWith(end)),
  ),
  contains: taking(
    1,
    onTexts('contains', ([text = '', part = '']) => text.includes(part)),
  ),
  lowerAscii: taking(
    0,
    onTexts('lowerAscii', ([text = '']) => text.replace(/[A-Z]+/g, (part) => part.toLowerCase())),
  ),
  upperAscii: taking(
    0,
    onTexts('upperAscii', ([text = '']) => text.replace(/[a-z]+/g, (part) => part.toUpperCase())),
  ),
  trim: taking(
    0,
    onTexts('trim', ([text = '']) => text.trim()),
  ),
  split: taking(1, split, 2),
  join: taking(0, join, 1),
}
