import type { Draft } from './draft.ts'

/** An operation that cannot be applied. */
export class PatchFailure extends Error {
  readonly code: 'ERR_PATCH_FAILED'
  constructor(message: string) {
    super(message)
    this.name = 'PatchFailure'
    this.code = 'ERR_PATCH_FAILED'
  }
}

/** The steps of an RFC 6901 pointer; none for the whole document. Throws a PatchFailure. */
export function parsePointer(pointer: string): readonly string[] {
  if (pointer === '') return []
  if (!pointer.startsWith('/')) throw new PatchFailure(`"${pointer}" does not begin with a slash`)
  return pointer
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/**
 * The value at `path`; `undefined` for a missing member. Throws a PatchFailure if a parent or list
 * element is missing.
 */
export function read(root: Draft, path: readonly string[]): Draft | undefined {
  const last = path.at(-1)
  if (last === undefined) return root
  const parent = parentOf(root, path)
  return parent instanceof Map ? parent.get(last) : parent[existing(parent, last)]
}

/**
 * Sets a member, or inserts `value` before an element of a list; `-` is the end. Throws a
 * PatchFailure.
 */
export function add(root: Draft, path: readonly string[], value: Draft): void {
  const parent = parentOf(root, path)
  const last = path.at(-1) ?? ''
  if (parent instanceof Map) parent.set(last, value)
  else if (last === '-') parent.push(value)
  else parent.splice(index(last, parent.length, parent.length + 1), 0, value)
}

/** Removes and returns the value at `path`. Throws a PatchFailure if there is none. */
export function remove(root: Draft, path: readonly string[]): Draft {
  const parent = parentOf(root, path)
  const last = path.at(-1) ?? ''
  const value = read(root, path)
  if (value === undefined) throw new PatchFailure(`nothing at ${last} to remove`)
  if (parent instanceof Map) parent.delete(last)
  else parent.splice(existing(parent, last), 1)
  return value
}

/**
 * Sets the value at `path`, which must exist in a list. Returns the root, which may be the new
 * value.
 */
export function replace(root: Draft, path: readonly string[], value: Draft): Draft {
  const last = path.at(-1)
  if (last === undefined) return value
  const parent = parentOf(root, path)
  if (parent instanceof Map) parent.set(last, value)
  else parent[existing(parent, last)] = value
  return root
}

function parentOf(root: Draft, path: readonly string[]): Draft[] | Map<string, Draft> {
  if (path.length === 0) throw new PatchFailure('the document is part of nothing')
  let at: Draft | undefined = root
  for (const step of path.slice(0, -1)) {
    if (at instanceof Map) at = at.get(step)
    else if (Array.isArray(at)) at = at[existing(at, step)]
    else throw new PatchFailure(`missing path: /${path.join('/')}`)
  }
  if (at instanceof Map || Array.isArray(at)) return at
  throw new PatchFailure(`missing path: /${path.join('/')}`)
}

const existing = (list: readonly Draft[], step: string): number =>
  index(step, list.length, list.length)

/** A position below `end`; negative ones count from it. */
function index(step: string, length: number, end: number): number {
  const at = /^[+-]?\d{1,9}$/.test(step) ? Number(step) : Number.NaN
  const position = at < 0 ? at + end : at
  if (position >= 0 && position < end) return position
  throw new PatchFailure(`no index ${step} in a list of ${length}`)
}
