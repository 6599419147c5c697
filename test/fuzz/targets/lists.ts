import { isDeepStrictEqual } from 'node:util'
import { MalformedBody } from '../../../src/api/codec/malformed-body.ts'
import type { Encoding } from '../../../src/api/kube/media-type.ts'
import { cutList, type WholeList } from '../../contracts/cutter-list.ts'
import { corpus } from '../corpus.ts'
import { chunked, mutated } from '../mutate.ts'
import type { Random } from '../random.ts'
import { isBalanced, membersOf, parsed, readList as readJsonList } from '../reference/json.ts'
import { readList as readProtobufList } from '../reference/protobuf.ts'
import { Finding, pure, type Opening, type Outcome } from '../target.ts'

/**
 * The cutters of lists. What is accepted comes out as the bytes that went in, with the objects that
 * a decoder of the whole finds; what such a decoder reads is accepted; no beginning of a list is
 * taken for a list; and how the bytes were split changes nothing.
 */
export const listTargets: readonly Opening[] = [
  listTarget('json', /list|pods-page|findings-list.*\.json/),
  listTarget('protobuf', /list.*\.pb$/),
]

function listTarget(encoding: Encoding, files: RegExp): Opening {
  const extension = encoding === 'json' ? '.json' : '.pb'
  const bodies = corpus(files)
  const usable = bodies.filter((body) => (body[0] === 0x7b) === (extension === '.json'))
  return pure(`list-${encoding}-object`, (random) => {
    const body = mutated(random, random.of(usable), usable)
    return listRound(encoding, body, random)
  })
}

/** What the cutter makes of one body, compared with what it should. */
export function listRound(encoding: Encoding, body: Buffer, random: Random): Outcome {
  const whole = attempt(encoding, [body])
  const split = attempt(encoding, chunked(random, body))
  if (!isDeepStrictEqual(comparable(whole), comparable(split))) {
    throw new Finding('another list when split otherwise', body)
  }
  const check = encoding === 'json' ? checkJson : checkProtobuf
  check(body, whole)
  if (!whole) return 'refused'
  if (!whole.body.equals(body)) throw new Finding('not the bytes that came', body)
  const text = body.toString('latin1').trimEnd()
  const part = body.subarray(0, random.below(text.length))
  if (encoding === 'json' && attempt(encoding, [part])) {
    throw new Finding('the beginning of a list was taken for a list', body)
  }
  return 'taken'
}

function attempt(encoding: Encoding, chunks: Buffer[]): WholeList | undefined {
  try {
    return cutList(encoding, 'object', chunks)
  } catch (error) {
    if (error instanceof MalformedBody) return undefined
    throw new Finding('not refused as malformed', Buffer.concat(chunks), error)
  }
}

const comparable = (list: WholeList | undefined) =>
  list && {
    gvk: list.end.gvk,
    meta: list.end.meta,
    extra: list.end.extra,
    // Where a list is split behind white space, the comma that follows it comes first.
    body: list.body.toString('latin1').replaceAll(/([ \t\r\n]+),/g, ',$1'),
    objects: list.objects.map(({ bytes, ...known }) => [
      known,
      Buffer.from(bytes).toString('latin1'),
    ]),
  }

function checkJson(body: Buffer, list: WholeList | undefined): void {
  const read = readJsonList(body)
  // Who says its kind later takes it from its objects, or is refused.
  const says = /^\{"kind":"\w+","apiVersion":"\w+",/.test(body.toString('latin1'))
  if (read && says && !list) throw new Finding('a list was refused', body)
  if (list && !isBalanced(body)) throw new Finding('brackets that do not match were taken', body)
  if (!list || !read) return
  const cut = list.objects.map(({ bytes }) => Buffer.from(bytes).toString('latin1'))
  if (!isDeepStrictEqual(cut, read.items)) throw new Finding('other objects', body)
  const { metadata } = read.whole as { metadata?: { resourceVersion?: unknown } | null }
  const version = typeof metadata?.resourceVersion === 'string' ? metadata.resourceVersion : ''
  if (list.end.meta.resourceVersion !== version) throw new Finding('another version', body)
  for (const object of list.objects) checkIdentity(object, body)
}

/**
 * Of an object that says something twice, which no API server sends, the first is taken here and
 * the last by others.
 */
function checkIdentity({ bytes, ...known }: WholeList['objects'][number], body: Buffer): void {
  const text = Buffer.from(bytes).toString('latin1')
  const metadata = membersOf(text).filter(([name]) => name === 'metadata')
  const [[, members] = []] = metadata
  if (metadata.length > 1) return
  const said = members?.startsWith('{') === true ? membersOf(members) : []
  for (const key of ['namespace', 'name', 'uid', 'resourceVersion'] as const) {
    const values = said.filter(([name]) => name === key)
    if (values.length > 1) continue
    const [value = ''] = values.map(([, written]) => parsed(Buffer.from(written, 'latin1')))
    if (known[key] !== (typeof value === 'string' ? value : '')) {
      throw new Finding(`another ${key}`, body)
    }
  }
}

function checkProtobuf(body: Buffer, list: WholeList | undefined): void {
  if (!list) return
  const read = readProtobufList(body)
  if (!read) throw new Finding('what is no list was taken for one', body)
  const cut = list.objects.map(({ bytes }) => Buffer.from(bytes).toString('latin1'))
  if (
    !isDeepStrictEqual(
      cut,
      read.items.map((item) => item.toString('latin1')),
    )
  ) {
    throw new Finding('other objects', body)
  }
  if (list.end.gvk.kind !== read.kind) throw new Finding('another kind', body)
  if (list.end.meta.resourceVersion !== read.resourceVersion)
    throw new Finding('another version', body)
}
