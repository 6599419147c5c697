import type { Exchange } from '../../http/exchange/exchange.ts'
import type { Span } from '../../tracing/span.ts'

/** The span of one request to an API server, until the head of the answer. */
export function attemptSpan({ span, method }: Exchange, origin: string): Span | undefined {
  if (!span) return undefined
  const { hostname, port, protocol } = new URL(origin)
  return span.child(method, 'client', {
    'http.request.method': method,
    'server.address': hostname,
    'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
  })
}

/** Ends it with the status of the answer; 0: the connection ended before. */
export function endAttempt(span: Span | undefined, status: number): void {
  if (status === 0) return span?.end('closed')
  span?.set({ 'http.response.status_code': status })
  span?.end(status >= 400 ? String(status) : undefined)
}

/** Ends it without an answer; `cause` is a `NoAnswer`. */
export function failAttempt(span: Span | undefined, cause: unknown): void {
  span?.end(firstCause(cause))
}

/** The code of the innermost cause that has one: that of a `NoAnswer` names no cause. */
function firstCause(error: unknown): string {
  let code = 'UNKNOWN'
  for (let each = error; each instanceof Error; each = each.cause) {
    const own = (each as NodeJS.ErrnoException).code
    if (typeof own === 'string') code = own
  }
  return code
}
