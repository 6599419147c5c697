import { turn } from '../../base/clock.ts'
import { listHead, listTail } from '../../api/codec/render.ts'
import type { ListReply, ObjectReply } from '../../http/exchange/exchange.ts'
import { HeaderList } from '../../http/exchange/headers.ts'
import { mediaType } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import type { Representation } from '../../api/request/representation.ts'
import type { ObjectOfKind, StoredList } from '../store/store.ts'

/** Headers that the API server sends with every answer. */
export const answerHeaders = (contentType: string): HeaderList =>
  new HeaderList(['Cache-Control', 'no-cache, private', 'Content-Type', contentType])

/** A stored object as the answer to a get. */
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

/** A stored list as the answer to a list, at its version. */
export function listReply(representation: Representation, stored: StoredList): ListReply {
  const meta = { resourceVersion: stored.resourceVersion, continue: '' }
  const { gvk, extra } = stored
  // Protobuf says how long a list is before its first object, so it has to be whole here; JSON is
  // read as it is sent.
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

/** Lets other requests be served between two runs of a long list. */
async function* inTurn(
  batches: Iterable<readonly ApiObject[]>,
): AsyncGenerator<{ objects: readonly ApiObject[] }> {
  for (const objects of batches) {
    if (objects.length > 0) yield { objects }
    await turn()
  }
}
