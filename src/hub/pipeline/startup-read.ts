import { sleep } from '../../base/clock.ts'
import type { Exchange, Reply } from '../../http/exchange/exchange.ts'
import { StatusError } from '../../api/kube/status.ts'
import type { Cloud } from '../upstream/cloud.ts'
import { requiresUpstream } from './freshness.ts'

/**
 * How long a read of any age waits, after the start, to be told whether there is a cloud: over a
 * link that is there, a probe takes less.
 */
const patienceMs = 100

/**
 * Waits for the first verdict on the cloud; but no longer than a moment where the cache may answer:
 * an API server that takes connections and says nothing is found out only when its probe's time is
 * over, and a node that boots without a link is not to wait for that. The answer of the cache,
 * which is `undefined` where it must not answer yet; `undefined` where there is a verdict by now.
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
  const patience = new AbortController()
  await Promise.race([cloud.onlineKnown(), sleep(patienceMs, patience.signal)])
  patience.abort()
  if (cloud.online !== undefined) return undefined
  const reply = await fromCache().catch((error: unknown) => {
    if (!(error instanceof StatusError)) throw error
    return undefined
  })
  // What the cache refuses, the cloud may know.
  if (!reply) await cloud.onlineKnown()
  return reply
}
