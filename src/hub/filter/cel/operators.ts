import { longestText, type Evaluation } from './evaluation.ts'
import {
  Failure,
  isNumber,
  isMap,
  listOf,
  MadeList,
  memberOf,
  typeOf,
  type List,
  type Value,
} from './value.ts'

type Binary = (left: Value, right: Value, evaluation: Evaluation) => Value

const noOverload = (operator: string, left: Value, right: Value): Failure =>
  new Failure(`no such overload: ${typeOf(left)} ${operator} ${typeOf(right)}`)

/**
 * As in CEL: numbers compare by value across types; values of other different types are not equal.
 */
export function isEqual(left: Value, right: Value, evaluation: Evaluation): boolean {
  evaluation.spend(1)
  // Compares a bigint with a number.
  if (isNumber(left) && isNumber(right)) return left == right // oxlint-disable-line eqeqeq
  if (typeof left === 'string' && typeof right === 'string') {
    if (left.length !== right.length) return false
    evaluation.spendOnText(left)
    return left === right
  }
  const [one, other] = [listOf(left), listOf(right)]
  if (one && other) {
    if (one.length !== other.length) return false
    for (let at = 0; at < one.length; at++) {
      if (!isEqual(one.at(at), other.at(at), evaluation)) return false
    }
    return true
  }
  const keys = one || other ? undefined : evaluation.keysOf(left)
  if (keys === undefined) return left === right
  if (evaluation.keysOf(right)?.length !== keys.length) return false
  return keys.every((key) => {
    const [mine, its] = [memberOf(left, key), memberOf(right, key)]
    return mine !== undefined && its !== undefined && isEqual(mine, its, evaluation)
  })
}

function compared(operator: string, test: (order: number) => boolean): Binary {
  return (left, right, evaluation) => {
    const order = orderOf(left, right, evaluation)
    return order === undefined ? noOverload(operator, left, right) : test(order)
  }
}

function orderOf(left: Value, right: Value, evaluation: Evaluation): number | undefined {
  if (isNumber(left) && isNumber(right)) {
    // oxlint-disable-next-line eqeqeq
    return left < right ? -1 : left > right ? 1 : left == right ? 0 : NaN
  }
  if (typeof left === 'string' && typeof right === 'string') {
    evaluation.spendOnText(left, right)
    // By code points, unlike JavaScript's own order.
    return Buffer.compare(Buffer.from(left), Buffer.from(right))
  }
  return typeof left === 'boolean' && typeof right === 'boolean'
    ? Number(left) - Number(right)
    : undefined
}

function arithmetic(
  operator: string,
  whole: (left: bigint, right: bigint) => bigint,
  other: ((left: number, right: number) => number) | undefined,
): Binary {
  return (left, right) => {
    if (typeof left === 'bigint' && typeof right === 'bigint') {
      if (right === 0n && (operator === '/' || operator === '%'))
        return new Failure('division by zero')
      return inRange(whole(left, right))
    }
    if (typeof left === 'number' && typeof right === 'number' && other) return other(left, right)
    return noOverload(operator, left, right)
  }
}

export const inRange = (value: bigint): bigint | Failure =>
  BigInt.asIntN(64, value) === value ? value : new Failure('integer overflow')

const sum = arithmetic(
  '+',
  (left, right) => left + right,
  (left, right) => left + right,
)

function added(left: Value, right: Value, evaluation: Evaluation): Value {
  if (typeof left === 'string' && typeof right === 'string') {
    evaluation.spendOnText(left, right)
    return boundText(left.length + right.length, () => left + right)
  }
  const [one, other] = [listOf(left), listOf(right)]
  if (!one || !other) return sum(left, right, evaluation)
  evaluation.spend(one.length + other.length)
  return new MadeList([...itemsOf(one), ...itemsOf(other)])
}

/** Makes a text whose length is known before. */
export const boundText = (length: number, make: () => string): string | Failure =>
  length > longestText ? new Failure(`a text of more than ${longestText} characters`) : make()

export function* itemsOf(list: List) {
  for (let at = 0; at < list.length; at++) yield list.at(at)
}

function isIn(left: Value, right: Value, evaluation: Evaluation): Value {
  const list = listOf(right)
  if (list) {
    for (const item of itemsOf(list)) if (isEqual(left, item, evaluation)) return true
    return false
  }
  if (!isMap(right)) return noOverload('in', left, right)
  return memberOf(right, left) !== undefined
}

/** The binary operators, for operands that are no failures. */
export const operators: Readonly<Record<string, Binary>> = {
  '==': (left, right, evaluation) => isEqual(left, right, evaluation),
  '!=': (left, right, evaluation) => !isEqual(left, right, evaluation),
  '<': compared('<', (order) => order < 0),
  '<=': compared('<=', (order) => order <= 0),
  '>': compared('>', (order) => order > 0),
  '>=': compared('>=', (order) => order >= 0),
  in: isIn,
  '+': added,
  '-': arithmetic(
    '-',
    (left, right) => left - right,
    (left, right) => left - right,
  ),
  '*': arithmetic(
    '*',
    (left, right) => left * right,
    (left, right) => left * right,
  ),
  '/': arithmetic(
    '/',
    (left, right) => left / right,
    (left, right) => left / right,
  ),
  '%': arithmetic('%', (left, right) => left % right, undefined),
}
