import type { Draft } from './draft.ts'

/** An operation that does not apply; whoever runs it says so to the client. */
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
 * What is at `path`; `undefined` for a member that is not there. Throws a PatchFailure where the
 * way to it, or the list, ends.
 */
export function read(root: Draft, path: readonly string[]): Draft | undefined {
  const last = path.at(-1)
  if (last === undefined) return root
  const parent = parentOf(root, path)
  return parent instanceof Map ? parent.get(last) : parent[existing(parent, last)]
}

/**
 * Sets a member, or puts `value` before an element of a list; `-` stands for the end. Throws a
 * PatchFailure.
 */
export function add(root: Draft, path: readonly string[], value: Draft): void {
  const parent = parentOf(root, path)
  const last = path.at(-1) ?? ''
  if (parent instanceof Map) parent.set(last, value)
  else if (last === '-') parent.push(value)
  else parent.splice(index(last, parent.length, parent.length + 1), 0, value)
}

/** Takes out what is at `path` and returns it. Throws a PatchFailure when there is nothing. */
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
 * Sets what is at `path`, which in a list must be there; returns the root, which may be the
 * replaced value.
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

/** A position below `end`; negative ones count from there. */
function index(step: string, length: number, end: number): number {
  const at = /^[+-]?\d{1,9}$/.test(step) ? Number(step) : Number.NaN
  const position = at < 0 ? at + end : at
  if (position >= 0 && position < end) return position
  throw new PatchFailure(`no index ${step} in a list of ${length}`)
}
