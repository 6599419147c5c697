import { BrokenAnswer, type Recorder, type Wanted } from '../cache/recorder.ts'
import { askingReadable } from '../exchange/accept-encoding.ts'
import type { BytesReply, Exchange, Handler, Reply } from '../exchange/exchange.ts'
import { answerLocally, type LocalFacts } from '../local/local.ts'
import type { Cloud } from '../remote/cloud.ts'
import { discard, Unreachable, type Forward, type ForwardOptions } from '../remote/forward.ts'
import type { Upgrade } from '../remote/upgrade.ts'
import { nobody } from '../request/identity.ts'
import { mostRecent, notOlderThan, toldOf, wantsTheCloud } from './freshness.ts'

export interface DispatchParts {
  readonly cloud: Cloud
  readonly forward: Forward
  readonly upgrade: Upgrade
  readonly recorder: Recorder
  readonly local: LocalFacts
  readonly onOutcome: ForwardOptions['onOutcome']
  /** A request is answered from the cache although the cloud is taken to be there. */
  readonly onDiverted: () => void
}

/**
 * Asks the cloud, or, when it is gone, the cache. A request under way when the cloud goes falls through to the cache in the same
 * exchange, unless it may have been acted upon, or can be answered by the cloud alone (see `wantsTheCloud`) and an API server answers a
 * probe made to hear it: then those that are there are asked once more, and what becomes of that is the answer, a 503 included.
 */
export function dispatcher(parts: DispatchParts): Handler<Exchange> {
  return async (exchange) => {
    if (parts.cloud.online === undefined) await parts.cloud.settled()
    if (parts.cloud.online !== true) return answerLocally(exchange, parts.local)
    try {
      return await askTwice(exchange, parts)
    } catch (error) {
      const failed = error instanceof Unreachable || error instanceof BrokenAnswer
      if (!failed || exchange.signal.aborted) throw error
      // What was sent may have been done; only what changes nothing can be answered twice.
      const sent = error instanceof BrokenAnswer || error.sent
      if (sent && exchange.method !== 'GET') throw error
      if (wantsTheCloud(exchange) && (await parts.cloud.anyAnswers())) {
        // The part of a body that is gone cannot be sent again.
        if (exchange.body?.readableDidRead) throw error
        return askTwice(exchange, parts)
      }
      parts.onDiverted()
      return answerLocally(exchange, parts.local)
    }
  }
}

/** Only gets are recorded, and nothing else breaks off here: what broke off can be asked for once more, of whoever is there. */
async function askTwice(exchange: Exchange, parts: DispatchParts): Promise<Reply> {
  try {
    return await askCloud(exchange, parts)
  } catch (error) {
    if (!(error instanceof BrokenAnswer) || exchange.signal.aborted) throw error
    return askCloud(exchange, parts)
  }
}

async function askCloud(exchange: Exchange, parts: DispatchParts): Promise<Reply> {
  if (exchange.upgrade) return parts.upgrade(exchange)
  const { onOutcome, forward, recorder } = parts
  const what = recorder.wants(exchange)
  if (what === undefined) return forward(exchange, { onOutcome })
  const record = (wanted: Wanted, reply: BytesReply): Promise<Reply> =>
    recorder.record(wanted, inWhoseName(exchange), reply)
  const asked = { ...exchange, headers: askingReadable(exchange.headers) }
  const told = toldOf(what)
  if (told === undefined) {
    return record(what, await forward(asked, { onOutcome }))
  }
  const current = { ...asked, url: notOlderThan(exchange.url, told) }
  const reply = await forward(current, { onOutcome })
  if (reply.status !== 504) return record(what, reply)
  // Nobody has come as far: all of them lag, or the cluster was restored from what it was before. The most recent tells which.
  discard(reply)
  const decisive = { ...asked, url: mostRecent(exchange.url) }
  return record({ ...what, mostRecent: true }, await forward(decisive, { onOutcome }))
}

/** Unless the caller has proved by now who it is, what is recorded, because a filter has to read it, is nobody's. */
const inWhoseName = (exchange: Exchange): Exchange =>
  exchange.claim?.holds() === false ? { ...exchange, identity: nobody } : exchange
