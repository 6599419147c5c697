import type { Exchange, Handler, Incoming, WireReply } from '../../http/exchange/exchange.ts'
import { authenticate, type AuthenticationRules } from '../identity/caller.ts'
import { componentOf } from '../../api/request/component.ts'
import { representationsOf } from '../../api/request/representation.ts'
import { parseRequestInfo, type RequestInfo } from '../../api/request/request-info.ts'

/** A request whose URL is understood. */
export interface ParsedRequest extends Incoming {
  readonly info: RequestInfo
}

/** Parses what is asked. */
export function withRequestInfo(
  next: Handler<ParsedRequest, WireReply>,
): Handler<Incoming, WireReply> {
  return (incoming) => {
    const info = parseRequestInfo(incoming.method, incoming.url)
    return next({ ...incoming, info })
  }
}

/**
 * Finds out who asks, through which component, and in which forms an answer is wanted: the request
 * becomes an exchange.
 */
export function withIdentity(rules: AuthenticationRules) {
  return (next: Handler<Exchange, WireReply>): Handler<ParsedRequest, WireReply> =>
    async (asked) => {
      const caller = await authenticate(asked, rules)
      return next({
        ...asked,
        ...caller,
        component: componentOf(asked.headers.get('user-agent')),
        representations: representationsOf(asked.headers.get('accept'), asked.info.query),
      })
    }
}
