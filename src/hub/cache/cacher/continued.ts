import { follow as aborting, type AbortSignalLike } from '../../../base/abort.ts'
import { versionOf, type WatchEvent } from '../../../api/codec/watch.ts'
import type { Reply } from '../../../http/exchange/exchange.ts'
import type { ResourceVersion } from '../../../api/kube/resource-version.ts'
import type { Cacher } from './cacher.ts'

interface Continuation {
  /** The version the client watches from; absent: the watch begins with the state. */
  readonly from: ResourceVersion | undefined
  /** Aborts when the client has disconnected. */
  readonly signal: AbortSignalLike
  /**
   * The rest of the watch after `version`, from a cacher; `undefined`: not yet, or with `isCut` not
   * at all.
   */
  readonly follow: (version: ResourceVersion, isCut: boolean) => Rest | undefined
  /** The cacher that may follow, as far as it is known: it is tried when it becomes live. */
  readonly cacher: () => Pick<Cacher, 'onReady'> | undefined
  /** Closes the upstream watch, which may be waiting for its next event. */
  readonly close: () => void
  /** Resolves when its events may be read; absent: at once. */
  readonly begin?: Promise<unknown> | undefined
}

/** Forwards the request to an API server, until `signal` aborts. */
export type PassThrough = (signal: AbortSignalLike) => Promise<Reply>

type Rest = AsyncIterable<readonly WatchEvent[]>

/** The signal of a client's own upstream watch, which ends with the client or by `close`. */
export function ownUpstream(client: AbortSignalLike): { signal: AbortSignal; close: () => void } {
  const ending = new AbortController()
  aborting(client, ending)
  return { signal: ending.signal, close: () => ending.abort() }
}

/**
 * The client's own upstream watch, until a cacher follows it: as soon as possible, so that the
 * upstream watch can be closed, or when it is cut. Nothing follows among initial events, whose
 * versions are unordered, nor after an ERROR.
 */
export async function* continued(
  events: AsyncIterable<readonly WatchEvent[]>,
  { from, signal, follow, cacher, close, begin }: Continuation,
): AsyncGenerator<readonly WatchEvent[]> {
  let at = from
  let rest: Rest | undefined
  let isReady = false
  let wake = (): void => undefined
  let heard: ReturnType<Continuation['cacher']>
  let listening: Disposable | undefined
  const listen = (): void => {
    const known = cacher()
    if (known === heard) return
    listening?.[Symbol.dispose]()
    heard = known
    listening = known?.onReady(() => {
      isReady = true
      wake()
    })
  }
  const source = events[Symbol.asyncIterator]()
  try {
    await begin
    for (let next = source.next(); ;) {
      listen()
      const woken = new Promise<undefined>((resolve) => {
        wake = () => resolve(undefined)
        if (isReady) resolve(undefined)
      })
      const result = await Promise.race([next, woken])
      if (result === undefined) isReady = false
      else if (result.done === true) break
      else {
        const group = result.value
        yield group
        if (group.some(({ type }) => type === 'ERROR')) {
          at = undefined
          break
        }
        at = positionAfter(group, at)
        next = source.next()
      }
      rest = at && follow(at, false)
      if (rest) break
    }
  } finally {
    listening?.[Symbol.dispose]()
    close()
    void source.return?.().catch(() => undefined)
  }
  if (!rest && at && !signal.aborted) rest = follow(at, true)
  if (rest) yield* rest
}

/** The client's version after a group of events; `undefined`: among initial events. */
function positionAfter(
  group: readonly WatchEvent[],
  before: ResourceVersion | undefined,
): ResourceVersion | undefined {
  const isKnown = before !== undefined || group.some(({ type }) => type === 'BOOKMARK')
  return isKnown ? (versionOf(group.at(-1)) ?? before) : before
}
