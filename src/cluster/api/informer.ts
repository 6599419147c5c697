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
  /** Makes the item that is stored of an object. `before` is the item stored until now. */
  readonly transform: (object: JsonObject, before: Item | undefined) => Item
}

/** Bounds the memory that one answer takes at the API server and here. */
const pageSize = 500

/** An informer of a collection of the cluster's API server. */
export class ApiInformer<Item> extends Informer<Item> {
  readonly #transform: ApiInformerOptions<Item>['transform']

  constructor(api: ApiServer, options: ApiInformerOptions<Item>) {
    super({
      ...options,
      reads: requestedReads({
        encoding: 'json',
        listQuery: () => ({ limit: String(pageSize) }),
        open: (query, signal) => open(api, options, query, signal),
      }),
      transform: ({ bytes }, before) =>
        options.transform(JSON.parse(Buffer.from(bytes).toString()) as JsonObject, before),
    })
    this.#transform = options.transform
  }

  /**
   * Stores the object that a write was answered with before the watch shows it, unless `isNewer`
   * says that the watch has shown a later one.
   */
  written(key: string, object: JsonObject, isNewer: (now: Item, before: Item) => boolean): void {
    const before = this.items.get(key)
    if (before === undefined) return
    const now = this.#transform(object, before)
    if (isNewer(now, before)) this.items.set(key, now)
  }
}

/** Throws `ResourceExpired`, or an `ApiFailure` for any other answer but 200. */
async function open<Item>(
  api: ApiServer,
  { path, query: selectors }: ApiInformerOptions<Item>,
  query: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<AsyncIterable<Buffer>> {
  const full = `${path}?${new URLSearchParams({ ...selectors, ...query })}`
  const answer = await api.open({ method: 'GET', path: full, urgent: true }, signal)
  if (answer.statusCode === 200) return answer.body as AsyncIterable<Buffer>
  const failure = new ApiFailure(`GET ${full}`, answer.statusCode, await answer.body.text())
  throw isGone(failure) ? new ResourceExpired() : failure
}
