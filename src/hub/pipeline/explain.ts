import type { Exchange, Handler, ReplySource, WireReply } from '../../http/exchange/exchange.ts'

/** In a request `1` requests an explanation; in an answer it is the explanation. */
const explainHeader = 'X-Nodehub-Explain'
const lowerCase = explainHeader.toLowerCase()

/** In characters: a reason may repeat what the client has sent. */
const longestReason = 256

/**
 * Adds `X-Nodehub-Explain` to the answers to callers that may have it and request it: the source,
 * the reason, the age, the API server and the filters. The field of a request goes no further, for
 * any caller. Exec and the like are not explained: their answer is written elsewhere.
 */
export function withExplanation(mayBeExplained: (exchange: Exchange) => Promise<boolean>) {
  return (next: Handler<Exchange, WireReply>): Handler<Exchange, WireReply> => {
    const explaining: Handler<Exchange, WireReply> = async (exchange) => {
      const wanted = exchange.headers.get(lowerCase)
      const headers = exchange.headers.without((name) => name === lowerCase)
      const isExplained = wanted === '1' && (await mayBeExplained(exchange))
      const reply = await next({ ...exchange, headers })
      if (!isExplained || reply.kind === 'upgrade') return reply
      const own = reply.headers.without((name) => name === lowerCase)
      return { ...reply, headers: own.with(explainHeader, explanationOf(reply)) }
    }
    return (exchange) => (exchange.headers.has(lowerCase) ? explaining : next)(exchange)
  }
}

/** Why the hub gave an answer, in the words of the header. */
interface ExplainedReply {
  readonly source: ReplySource
  readonly reason: string | undefined
  readonly upstream: string | undefined
  /** In seconds, of an answer of the cache. */
  readonly age: string | undefined
  readonly filters: readonly string[] | undefined
}

/**
 * The explanation of an answer, as the header has it; other ways of explaining it use the same
 * words.
 */
export function explained(reply: WireReply): ExplainedReply {
  const { from, explanation: { reason, upstream, filtered } = {} } = reply
  return {
    source: from,
    reason: reason === undefined ? undefined : quotable(reason),
    upstream,
    age: from === 'cache' && reply.kind !== 'upgrade' ? reply.headers.get('age') : undefined,
    filters: filtered?.filters,
  }
}

function explanationOf(reply: WireReply): string {
  const { source, reason, upstream, age, filters } = explained(reply)
  return [
    `source=${source}`,
    ...(reason === undefined ? [] : [`reason="${reason}"`]),
    ...(upstream === undefined ? [] : [`upstream=${upstream}`]),
    ...(age === undefined ? [] : [`age=${age}`]),
    ...(filters ? [`filters=${filters.join(',')}`] : []),
  ].join('; ')
}

/** Fit for a quoted string (RFC 9110 section 5.6.4), in one line of ASCII. */
const quotable = (text: string): string =>
  text
    .slice(0, longestReason)
    .replaceAll('"', "'")
    .replaceAll(/[^\x20-\x7e]|\\/g, '?')
