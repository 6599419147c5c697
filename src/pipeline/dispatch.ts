import { BrokenAnswer, type Recorder } from '../cache/recorder.ts'
import { askingReadable } from '../exchange/accept-encoding.ts'
import type { Exchange, Handler, Reply } from '../exchange/exchange.ts'
import { answerLocally, type LocalFacts } from '../local/local.ts'
import type { Cloud } from '../remote/cloud.ts'
import { Unreachable, type Forward, type ForwardOptions } from '../remote/forward.ts'
import type { Upgrade } from '../remote/upgrade.ts'

export interface DispatchParts {
  readonly cloud: Cloud
  readonly forward: Forward
  readonly upgrade: Upgrade
  readonly recorder: Recorder
  readonly local: LocalFacts
  readonly onOutcome: ForwardOptions['onOutcome']
}

/**
 * Asks the cloud, or, when it is gone, the cache. A request under way when the cloud goes falls through to the cache in the same
 * exchange, unless it may have been acted upon.
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
  const { onOutcome } = parts
  const what = parts.recorder.wants(exchange)
  if (what === undefined) return parts.forward(exchange, { onOutcome })
  const asked = { ...exchange, headers: askingReadable(exchange.headers) }
  return parts.recorder.record(what, exchange, await parts.forward(asked, { onOutcome }))
}
