import { isDeepStrictEqual } from 'node:util'
import { cursorOf, type Cursor, type Path } from '../../../src/api/codec/cursor.ts'
import { applyEdits, type Edit } from '../../../src/api/codec/edit.ts'
import { MalformedBody } from '../../../src/api/codec/malformed-body.ts'
import { objectBody, readObject } from '../../../src/api/codec/object.ts'
import { PathError } from '../../../src/api/codec/element.ts'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import type { Encoding } from '../../../src/api/kube/media-type.ts'
import { corpus } from '../corpus.ts'
import { mutated } from '../mutate.ts'
import type { Random } from '../random.ts'
import { isObject, parsed } from '../reference/json.ts'
import { Finding, pure, type Opening, type Outcome } from '../target.ts'

/**
 * The readers of single objects, cursors over them and edits of them. Nothing but a refusal is
 * thrown, a cursor sees what a decoder of the whole sees, an edit changes what it names and nothing
 * else, and what is written anew can be read.
 */
export const objectTargets: readonly Opening[] = (['json', 'protobuf'] as const).map((encoding) => {
  const files = corpus(
    encoding === 'json'
      ? /(-get|create-|update-|patch-|service|lease).*\.json$/
      : /(-get|service|delete-).*\.pb$/,
  )
  return pure(`object-${encoding}`, (random) =>
    objectRound(encoding, mutated(random, random.of(files), files), random),
  )
})

const paths: readonly Path[] = [
  ['metadata', 'name'],
  ['metadata', 'labels', 'app'],
  ['metadata', 'annotations', 'a'],
  ['metadata', 'creationTimestamp'],
  ['metadata', 'generation'],
  ['metadata', 'ownerReferences', 0, 'name'],
  ['spec', 'nodeName'],
  ['spec', 'containers', 0, 'image'],
  ['spec', 'containers', 1, 'ports', 0, 'containerPort'],
  ['spec', 'clusterIP'],
  ['spec', 'hostNetwork'],
  ['status', 'conditions', 0, 'status'],
  ['data', 'key'],
]

/** One body, whichever it is. */
function objectRound(encoding: Encoding, body: Buffer, random: Random): Outcome {
  const read = allowed(body, () => readObject(encoding, 'object', body))
  if (!read) return 'refused'
  const { gvk, object } = read
  const cursor = allowed(body, () => cursorOf(encoding, gvk, object))
  const whole = encoding === 'json' ? parsed(Buffer.from(object.bytes)) : undefined
  for (const path of paths) if (cursor) checkPath(cursor, path, whole, body)
  const again = allowed(body, () => objectBody(encoding, gvk, object))
  if (again && !allowed(body, () => readObject(encoding, 'object', again))) {
    throw new Finding('what was written cannot be read', body)
  }
  const edit = editOf(random)
  const edited = allowed(body, () => applyEdits(encoding, gvk, object, [edit]))
  if (edited && isObject(whole)) checkEdit(whole, Buffer.from(edited.bytes), edit, body)
  return 'taken'
}

/** What `act` returns; `undefined` where it refuses the body or the path. */
function allowed<T>(body: Buffer, act: () => T): T | undefined {
  try {
    return act()
  } catch (error) {
    if (error instanceof MalformedBody || error instanceof PathError) return undefined
    throw new Finding('neither an answer nor a refusal', body, error)
  }
}

function checkPath(cursor: Cursor, path: Path, whole: unknown, body: Buffer): void {
  const value = allowed(body, () => cursor.value(path))
  const count = allowed(body, () => cursor.count(path.slice(0, 2)))
  if (!isObject(whole as JsonObject)) return
  const expected = valueAt(whole, path)
  const scalar = typeof expected === 'object' ? undefined : expected
  if (!Object.is(value, scalar)) throw new Finding(`another ${path.join('.')}`, body)
  const list = valueAt(whole, path.slice(0, 2))
  if (count !== (Array.isArray(list) ? list.length : 0)) throw new Finding('another count', body)
}

const valueAt = (from: unknown, path: Path): unknown =>
  path.reduce<unknown>((value, step) => {
    if (Array.isArray(value)) return typeof step === 'number' ? (value[step] as unknown) : undefined
    const isMap = typeof value === 'object' && value !== null && typeof step === 'string'
    return isMap && Object.hasOwn(value, step)
      ? (value as Record<string, unknown>)[step]
      : undefined
  }, from)

const editOf = (random: Random): Edit =>
  random.of<Edit>([
    { op: 'set', path: ['spec', 'nodeName'], value: 'another"node\u2028' },
    { op: 'set', path: ['metadata', 'labels', 'app'], value: 'x' },
    { op: 'remove', path: ['metadata', 'labels', 'app'] },
    { op: 'remove', path: ['spec', 'containers', '*', 'image'] },
    { op: 'remove', path: ['status'] },
  ])

/** Beside what the edit names everything is as it was. */
function checkEdit(before: JsonObject, bytes: Buffer, edit: Edit, body: Buffer): void {
  const after = parsed(bytes)
  if (!isObject(after)) throw new Finding('an edit made what is no object', body)
  if (!edit.path.includes('*')) {
    const value = valueAt(after, edit.path)
    const expected = edit.op === 'set' ? edit.value : undefined
    if (!isDeepStrictEqual(value, expected)) throw new Finding('the edit was not made', body)
  }
  const [top = ''] = edit.path
  const others = (object: JsonObject) => Object.entries(object).filter(([key]) => key !== top)
  if (!isDeepStrictEqual(others(before), others(after))) {
    throw new Finding('the edit changed what it does not name', body)
  }
}
