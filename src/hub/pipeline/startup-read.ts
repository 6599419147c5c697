import { within } from '../../base/clock.ts'
import type { Exchange, Reply } from '../../http/exchange/exchange.ts'
import { StatusError } from '../../api/kube/status.ts'
import type { Cloud } from '../upstream/cloud.ts'
import { requiresUpstream } from './freshness.ts'

/**
 * How long a read of any age waits for the first probe after the start: where API servers can be
 * reached, a probe takes less.
 */
const patienceMs = 100

/**
 * Waits until it is known whether the hub is online; but only briefly where the cache may answer:
 * an API server that accepts connections and does not answer is detected only at the timeout of its
 * probe, and a node that boots offline must not wait for that. Returns the cache's answer where it
 * is still unknown; `undefined` once it is known.
 */
export async function answerAtStartup(
  exchange: Exchange,
  cloud: Pick<Cloud, 'online' | 'onlineKnown'>,
  fromCache: () => Promise<Reply | undefined>,
): Promise<Reply | undefined> {
  if (requiresUpstream(exchange)) {
    await cloud.onlineKnown()
    return undefined
  }
  await within(patienceMs, cloud.onlineKnown())
  if (cloud.online !== undefined) return undefined
  const reply = await fromCache().catch((error: unknown) => {
    if (!(error instanceof StatusError)) throw error
    return undefined
  })
  // What the cache refuses an API server may answer.
  if (!reply) await cloud.onlineKnown()
  return reply
}
