/** Facts about a span, by OpenTelemetry's names where it has one. None may hold a secret. */
export type Attributes = Readonly<Record<string, string | number | readonly string[] | undefined>>

/** One operation of a recorded trace. */
export interface Span {
  /**
   * The header fields with which a request continues the trace below this span (W3C Trace Context),
   * as names in lower case and values.
   */
  readonly contextFields: ReadonlyMap<string, string>
  /**
   * Begins an operation that is part of this one: `client`, a request that the hub sends;
   * `internal`, work of its own.
   */
  child(name: string, kind: 'client' | 'internal', attributes: Attributes): Span
  set(attributes: Attributes): void
  /** Ends it, as failed where an error is given: a code, never a text. Later calls do nothing. */
  end(error?: string): void
}

/** The header fields of a request, by names in lower case. */
interface Fields {
  get(name: string): string | undefined
}

/** Begins the spans of requests. */
export interface Tracer {
  /**
   * Begins the span of a request; `undefined` where it is not sampled. With `parent` it continues
   * the trace that these fields name, and is recorded if that is.
   */
  begin(name: string, attributes: Attributes, parent: Fields | undefined): Span | undefined
}

/**
 * Ends the span of an HTTP request with the status of its answer, which is a failure from `failure`
 * on; 0: the connection ended before.
 */
export function endSpan(span: Span, status: number, failure: 400 | 500): void {
  if (status === 0) return span.end('closed')
  span.set({ 'http.response.status_code': status })
  span.end(status >= failure ? String(status) : undefined)
}
