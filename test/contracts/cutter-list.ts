import type { Test } from 'tap'
import type { Encoding, Projection } from '../../src/api/kube/media-type.ts'
import {
  listDecoder,
  type DecodedListEnd,
  type ListHead,
} from '../../src/api/codec/list-decoder.ts'
import type { ApiObject } from '../../src/api/kube/object.ts'
import { everySplit } from '../kit/fixture.ts'

/** What a cutter made of a body, whichever way it was split. */
export interface WholeList {
  readonly head: ListHead
  readonly objects: readonly ApiObject[]
  readonly end: DecodedListEnd
  /** Head, batches and tail put together again. */
  readonly body: Buffer
}

export function cutList(
  encoding: Encoding,
  projection: Projection,
  chunks: readonly Buffer[],
): WholeList {
  const cutter = listDecoder(encoding, projection)
  const pieces: Uint8Array[] = []
  const objects: ApiObject[] = []
  let head: ListHead | undefined
  for (const chunk of chunks) {
    const cut = cutter.push([chunk])
    if (cut.head) {
      if (head) throw new Error('two heads')
      head = cut.head
      pieces.push(...cut.head.bytes)
    }
    if (!cut.batch) continue
    if (!head) throw new Error('a batch before the head')
    if (cut.batch.objects.length === 0) throw new Error('an empty batch')
    if (objects.length > 0 && encoding === 'json') pieces.push(Buffer.from(','))
    for (const object of cut.batch.objects) objects.push(object)
    pieces.push(...(cut.batch.bytes ?? []))
  }
  const end = cutter.end()
  if (!head) throw new Error('no head')
  return { head, objects, end, body: Buffer.concat([...pieces, ...end.tail]) }
}

/** Whatever the chunks, the same list: to be asked of every body a server sends. */
export function listCutterContract(
  t: Test,
  encoding: Encoding,
  projection: Projection,
  name: string,
  body: Buffer,
): void {
  void t.test(`${name} is the same list and the same bytes wherever it is split`, (t) => {
    const whole = cutList(encoding, projection, [body])
    t.ok(whole.body.equals(body), 'nothing is lost or added')
    const parts = { objects: whole.objects, gvk: whole.end.gvk, meta: whole.end.meta }
    for (const chunks of everySplit(body)) {
      const split = cutList(encoding, projection, chunks)
      const same = { objects: split.objects, gvk: split.end.gvk, meta: split.end.meta }
      if (!split.body.equals(body) || !isSame(same, parts)) {
        t.fail(`another list when split as ${chunks.length} chunks at ${chunks[0]?.length}`)
        break
      }
    }
    t.end()
  })
}

const isSame = (
  a: { objects: readonly ApiObject[] } & object,
  b: { objects: readonly ApiObject[] } & object,
): boolean =>
  a.objects.length === b.objects.length &&
  a.objects.every(({ bytes, ...known }, at) => {
    const { bytes: others, ...theirs } = b.objects[at] ?? { bytes: Buffer.alloc(0) }
    return Buffer.compare(bytes, others) === 0 && JSON.stringify(known) === JSON.stringify(theirs)
  }) &&
  JSON.stringify({ ...a, objects: 0 }) === JSON.stringify({ ...b, objects: 0 })
