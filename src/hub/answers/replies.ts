import { now } from '../../base/clock.ts'
import { TimeSlices } from '../../base/time-slices.ts'
import type { ListBatch } from '../../api/codec/list.ts'
import type { ObjectOfKind } from '../../api/codec/object.ts'
import { listHead, listTail } from '../../api/codec/render.ts'
import type { ListReply, ObjectReply, WatchReply, Exchange } from '../../http/exchange/exchange.ts'
import { HeaderList } from '../../http/exchange/headers.ts'
import { mediaType } from '../../api/kube/media-type.ts'
import { expired } from '../../api/kube/status.ts'
import type { Representation } from '../../api/request/representation.ts'
import type { StoredList } from '../store/store.ts'

/** The headers that an API server sends with every answer. */
export const answerHeaders = (contentType: string): HeaderList =>
  new HeaderList(['Cache-Control', 'no-cache, private', 'Content-Type', contentType])

/** The answer to a get, from a stored object. */
export const objectReply = (
  representation: Representation,
  { gvk, object }: ObjectOfKind,
): ObjectReply => ({
  kind: 'object',
  from: 'cache',
  status: 200,
  headers: answerHeaders(mediaType(representation.encoding)),
  representation,
  gvk,
  object,
})

/** The answer to a list, from a stored list and at its version. */
export function listReply(representation: Representation, stored: StoredList): ListReply {
  const meta = { resourceVersion: stored.resourceVersion, continue: '' }
  const { gvk, extra } = stored
  // Protobuf has the length of a list before its first object, so all of it is read here. JSON is
  // read while it is sent.
  const batches = representation.encoding === 'protobuf' ? [...stored.batches] : stored.batches
  const objects = Array.isArray(batches) ? batches.flatMap((batch) => batch.objects) : []
  return {
    kind: 'list',
    from: 'cache',
    status: 200,
    headers: answerHeaders(mediaType(representation.encoding)),
    representation,
    list: {
      gvk,
      head: [listHead(representation.encoding, gvk, meta, extra, objects)],
      batches: inTurn(batches),
      end: () => Promise.resolve({ meta, extra, tail: [listTail(representation.encoding)] }),
    },
  }
}

/** The answer to a watch from a version that is no longer known: its client has to list. */
export const expiredWatch = (representation: Representation, message: string): WatchReply => ({
  kind: 'watch',
  from: 'cache',
  status: 200,
  headers: answerHeaders(mediaType(representation.encoding, true)),
  representation: () => representation,
  gvk: () => ({ group: '', version: '', kind: '' }),
  events: once([{ type: 'ERROR', status: expired(message) }]),
})

async function* once<T>(value: T): AsyncGenerator<T> {
  yield value
}

/** Serves other requests between two batches of a long list. */
export async function* inTurn(batches: Iterable<ListBatch>): AsyncGenerator<ListBatch> {
  const slices = new TimeSlices()
  for (const batch of batches) {
    if (batch.objects.length > 0) yield batch
    await slices.pause()
  }
}

/**
 * Components that print warnings for a person. Others would write one to their log for each
 * request.
 */
const printingWarnings = new Set(['kubectl', 'oc', 'k9s', 'helm'])

/**
 * Adds `Age`: seconds since an API server last confirmed the answer (RFC 9111 section 5.1).
 * `confirmedAt` is in milliseconds since the epoch; 0: not known, no header.
 */
export function withAge(headers: HeaderList, confirmedAt: number): HeaderList {
  if (confirmedAt === 0) return headers
  const seconds = Math.floor((now() - confirmedAt) / 1000)
  return headers.with('Age', String(Math.max(seconds, 0)))
}

/** Whether the component prints warnings for the person who uses it. */
export const isForPerson = ({ component }: { readonly component: string }): boolean =>
  printingWarnings.has(component)

/**
 * Adds `Age`, and for a person a `Warning`, which kubectl prints. The warning has the time and not
 * the age, so that kubectl prints it once for all equally old answers of a command.
 */
export function withStaleness(
  headers: HeaderList,
  exchange: Exchange,
  confirmedAt: number,
): HeaderList {
  const isMarked = confirmedAt !== 0 && isForPerson(exchange)
  return isMarked ? withWarning(headers, confirmedAt) : withAge(headers, confirmedAt)
}

/** Adds `Age` and the `Warning`, which ends with `note`. */
export function withWarning(headers: HeaderList, confirmedAt: number, note = ''): HeaderList {
  const since =
    confirmedAt === 0
      ? 'for an unknown time'
      : `since ${new Date(Math.floor(confirmedAt / 1000) * 1000).toISOString().replace('.000', '')}`
  return withAge(headers, confirmedAt).with(
    'Warning',
    `299 - "answered from the node's cache: the cloud has not confirmed this ${since}${note}"`,
  )
}
