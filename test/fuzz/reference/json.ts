import type { Json, JsonObject } from '../../../src/api/kube/json.ts'

/**
 * What JSON.parse makes of the bytes, and which bytes each value was: slow and simple, for
 * comparison.
 */
export interface JsonList {
  readonly whole: JsonObject
  /** As latin1. */
  readonly items: readonly string[]
}

/** `undefined` where it is no object with one member `items` that is null or a list of objects. */
export function readList(body: Buffer): JsonList | undefined {
  const whole = parsed(body)
  if (!isObject(whole)) return undefined
  const named = membersOf(body.toString('latin1').trim()).filter(([name]) => name === 'items')
  const [[, text] = []] = named
  if (named.length !== 1 || text === undefined) return undefined
  if (text === 'null') return { whole, items: [] }
  if (!text.startsWith('[')) return undefined
  const items = elementsOf(text)
  return items.every((item) => item.startsWith('{')) ? { whole, items } : undefined
}

export function parsed(body: Buffer): Json | undefined {
  try {
    return JSON.parse(body.toString()) as Json
  } catch {
    return undefined
  }
}

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * The values that stand one behind the other in `body`, as latin1, as far as brackets and strings
 * say; and what is left over.
 */
export function framesOf(body: Buffer): { frames: string[]; rest: string } {
  let rest = body.toString('latin1')
  const frames: string[] = []
  for (;;) {
    rest = rest.replace(/^[ \t\r\n]+/, '')
    const end = rest.startsWith('{') ? endOf(rest, 0) : undefined
    if (end === undefined) return { frames, rest }
    frames.push(rest.slice(0, end))
    rest = rest.slice(end)
  }
}

/** Whether brackets and strings end as they began: the least a value must do to look whole. */
export function isBalanced(body: Buffer): boolean {
  const { frames, rest } = framesOf(body)
  return frames.length === 1 && rest === ''
}

/** Behind the value at `from`; `undefined` where it does not end or its brackets do not match. */
function endOf(text: string, from: number): number | undefined {
  if (text[from] === '"') return stringEnd(text, from)
  if (text[from] !== '{' && text[from] !== '[') {
    const length = /^[^,\]}: \t\r\n]*/.exec(text.slice(from, from + 400))?.[0].length ?? 0
    return from + length
  }
  const open: string[] = []
  for (let at = from; at < text.length;) {
    const sign = text[at] as string
    if (sign === '"') {
      const end = stringEnd(text, at)
      if (end === undefined) return undefined
      at = end
      continue
    }
    if (sign === '{' || sign === '[') open.push(sign === '{' ? '}' : ']')
    else if ((sign === '}' || sign === ']') && open.pop() !== sign) return undefined
    at++
    if (open.length === 0) return at
  }
  return undefined
}

function stringEnd(text: string, from: number): number | undefined {
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '"') return at + 1
  }
  return undefined
}

/** Names and texts of the members of an object that is known to be JSON. */
export function membersOf(object: string): [string, string][] {
  return partsOf(object).map((part) => {
    const colon = stringEnd(part, 0) ?? 0
    const name = JSON.parse(Buffer.from(part.slice(0, colon), 'latin1').toString()) as string
    return [name, part.slice(colon).replace(/^[ \t\r\n]*:[ \t\r\n]*/, '')]
  })
}

/** The texts of the elements of a list that is known to be JSON. */
const elementsOf = (list: string): string[] => partsOf(list)

/** What stands between the commas of the outermost brackets. */
function partsOf(text: string): string[] {
  const parts: string[] = []
  let start = 1
  for (let at = 1; at < text.length - 1;) {
    const sign = text[at] as string
    if (sign === ',') {
      parts.push(text.slice(start, at).trim())
      start = ++at
    } else if (sign === '"' || sign === '{' || sign === '[') at = endOf(text, at) ?? text.length
    else at++
  }
  const last = text.slice(start, -1).trim()
  return last === '' ? parts : [...parts, last]
}
