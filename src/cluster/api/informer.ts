import type { JsonObject } from '../../api/kube/json.ts'
import { Informer, requestedReads, type InformerOptions } from '../../api/reflector/informer.ts'
import { ResourceExpired } from '../../api/reflector/reflector.ts'
import type { ApiServer } from './api-server.ts'
import { ApiFailure, isGone } from './failure.ts'

export interface ApiInformerOptions<Item> extends Pick<
  InformerOptions<Item>,
  'onChange' | 'onFailure'
> {
  /** Of the collection, without a query. */
  readonly path: string
  /** Selectors. */
  readonly query?: Readonly<Record<string, string>>
  /** Makes the item to store of an object, if any. `before` is the item stored until now. */
  readonly transform: (object: JsonObject, before: Item | undefined) => Item | undefined
}

/** Bounds the memory that one answer takes at the API server and here. */
const pageSize = 500

/** An informer of a collection of the cluster's API server. */
export const apiInformer = <Item>(
  api: ApiServer,
  options: ApiInformerOptions<Item>,
): Informer<Item> =>
  new Informer({
    ...options,
    reads: requestedReads({
      encoding: 'json',
      listQuery: () => ({ limit: String(pageSize) }),
      open: (query, signal) => open(api, options, query, signal),
    }),
    transform: ({ bytes }, before) =>
      options.transform(JSON.parse(Buffer.from(bytes).toString()) as JsonObject, before),
  })

/** Throws `ResourceExpired`, or an `ApiFailure` for any other answer but 200. */
async function open<Item>(
  api: ApiServer,
  { path, query: selectors }: ApiInformerOptions<Item>,
  query: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<AsyncIterable<Buffer>> {
  const full = `${path}?${new URLSearchParams({ ...selectors, ...query })}`
  const answer = await api.open({ method: 'GET', path: full }, signal)
  if (answer.statusCode === 200) return answer.body as AsyncIterable<Buffer>
  const failure = new ApiFailure(`GET ${full}`, answer.statusCode, await answer.body.text())
  throw isGone(failure) ? new ResourceExpired() : failure
}
