import { turn } from '../../base/clock.ts'
import { listHead, listTail } from '../../api/codec/render.ts'
import type { ListReply, ObjectReply, WatchReply } from '../../http/exchange/exchange.ts'
import { HeaderList } from '../../http/exchange/headers.ts'
import { mediaType } from '../../api/kube/media-type.ts'
import { expired } from '../../api/kube/status.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import type { Representation } from '../../api/request/representation.ts'
import type { ObjectOfKind, StoredList } from '../store/store.ts'

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
  const objects = Array.isArray(batches) ? batches.flat() : []
  return {
    kind: 'list',
    from: 'cache',
    status: 200,
    headers: answerHeaders(mediaType(representation.encoding)),
    representation,
    list: {
      gvk,
      head: [
        listHead(representation.encoding, representation.projection, gvk, meta, extra, objects),
      ],
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
async function* inTurn(
  batches: Iterable<readonly ApiObject[]>,
): AsyncGenerator<{ objects: readonly ApiObject[] }> {
  for (const objects of batches) {
    if (objects.length > 0) yield { objects }
    await turn()
  }
}
