import { setTimeout as sleep } from 'node:timers/promises'
import { Connection, requestOf } from '../load/connection.ts'
import type { Target } from '../load/target.ts'

/** One request of a node's component, over and over. */
export interface NodeRequest {
  readonly method: 'GET' | 'PATCH'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

/** What the node's own requests came to. */
export interface Served {
  /** Times of answers of 2xx, in milliseconds. */
  readonly times: readonly number[]
  /** Every request that had no answer of 2xx, and why. */
  readonly failures: readonly string[]
}

/** How long a component waits before it gives a request up. */
const patienceMs = 10_000

/**
 * How long a connection is kept for the next request: not as long as the load's own reader waits.
 */
const keptMs = 10_000

interface Kept {
  readonly connection: Connection
  readonly since: number
}

/** The connection used last, if that was not long ago; all that were used longer ago are closed. */
function usedLast(kept: Kept[]): Connection | undefined {
  const last = kept.pop()
  if (last && performance.now() - last.since < keptMs) return last.connection
  last?.connection.close()
  for (const { connection } of kept.splice(0)) connection.close()
  return undefined
}

/**
 * Sends `requests` in turn, `perSecond` a second whether answers come or not, over kept connections
 * to the targets in turn, until `signal` aborts. A request is not repeated: a connection that is
 * closed under it is a failure.
 */
export async function nodeTraffic(
  targets: readonly Target[],
  requests: readonly NodeRequest[],
  perSecond: number,
  signal: AbortSignal,
): Promise<Served> {
  const times: number[] = []
  const failures: string[] = []
  const idle = targets.map((): Kept[] => [])
  const under = new Set<Promise<void>>()
  const begun = performance.now()
  const send = async (n: number): Promise<void> => {
    const at = n % targets.length
    const [target, kept] = [targets[at], idle[at]]
    const request = requests[Math.floor(n / targets.length) % requests.length]
    if (!target || !kept || !request) return
    const what = `${request.method} ${request.path} at ${target.url}`
    const sentAt = performance.now()
    const after = `after ${((sentAt - begun) / 1000).toFixed(1)} s`
    try {
      const answer = await within(patienceMs, async () => {
        const connection = usedLast(kept) ?? (await Connection.to(target))
        const text = requestOf(request.method, request.path, request.headers, request.body)
        const answered = await connection.ask(text)
        kept.push({ connection, since: performance.now() })
        return answered
      })
      if (answer.status < 300) times.push(performance.now() - sentAt)
      else failures.push(`${what}: ${answer.status} ${after}`)
    } catch (cause) {
      failures.push(`${what}: ${(cause as Error).message} ${after}`)
    }
  }
  for (let n = 0; !signal.aborted; n++) {
    const one = send(n).finally(() => under.delete(one))
    under.add(one)
    await sleep(Math.max(0, begun + ((n + 1) * 1000) / perSecond - performance.now()))
  }
  await Promise.all(under)
  for (const { connection } of idle.flat()) connection.close()
  return { times, failures }
}

/** Rejects where `act` takes longer than `ms`; what it waits for is left to itself. */
async function within<T>(ms: number, act: () => Promise<T>): Promise<T> {
  const late = new AbortController()
  try {
    return await Promise.race([
      act(),
      sleep(ms, undefined, { signal: late.signal }).then(() => {
        throw new Error(`no answer in ${ms} ms`)
      }),
    ])
  } finally {
    late.abort()
  }
}
