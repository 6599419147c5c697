import type { Tracer } from '../../tracing/span.ts'
import type { HubContext } from './hub-context.ts'

/** The tracer, where --tracing-endpoint is given: only then OpenTelemetry is loaded. */
export async function tracerOf({
  config: { tracing, nodeName },
  metrics,
  log,
}: HubContext): Promise<(Tracer & AsyncDisposable) | undefined> {
  if (!tracing) return undefined
  const { openTracer } = await import('../../tracing/opentelemetry.ts')
  let isTaken: boolean | undefined
  return openTracer({
    ...tracing,
    nodeName,
    onExported: (spans) => {
      metrics.tracingSpans.add({ result: 'exported' }, spans)
      if (isTaken === false) log.info('the tracing collector takes spans again')
      isTaken = true
    },
    onLost: (spans, err) => {
      metrics.tracingSpans.add({ result: 'failed' }, spans)
      if (isTaken === false) return
      isTaken = false
      log.warn({ err }, 'the tracing collector does not take spans: they are lost')
    },
  })
}
