import type { Exchange, Handler, Incoming, WireReply } from '../../http/exchange/exchange.ts'
import { authenticate, type AuthenticationRules } from '../identity/caller.ts'
import { componentOf } from '../../api/request/component.ts'
import { representationsOf } from '../../api/request/representation.ts'
import { parseRequestInfo, type RequestInfo } from '../../api/request/request-info.ts'

/** A request with its parsed URL. */
interface ParsedRequest extends Incoming {
  readonly info: RequestInfo
}

/** Parses the URL of a request. */
export function withRequestInfo(
  next: Handler<ParsedRequest, WireReply>,
): Handler<Incoming, WireReply> {
  return (incoming) => {
    const info = parseRequestInfo(incoming.method, incoming.url)
    return next({ ...incoming, info })
  }
}

/**
 * Authenticates the caller, and determines its component and the representations that it accepts:
 * the request becomes an exchange.
 */
export function withIdentity(rules: AuthenticationRules) {
  return (next: Handler<Exchange, WireReply>): Handler<ParsedRequest, WireReply> =>
    async (request) => {
      const caller = await authenticate(request, rules)
      return next({
        ...request,
        ...caller,
        component: componentOf(request.headers.get('user-agent')),
        representations: representationsOf(request.headers.get('accept'), request.info.query),
      })
    }
}
