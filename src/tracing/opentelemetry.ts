/**
 * Tracing with OpenTelemetry's own parts. Loaded only where tracing is on: they take 10 packages,
 * and a node without tracing need not read them.
 */
import {
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Context,
  type Span as SdkSpan,
  type Tracer as SdkTracer,
} from '@opentelemetry/api'
import { ExportResultCode, W3CTraceContextPropagator, type ExportResult } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
  type ReadableSpan,
  type SpanExporter,
} from '@opentelemetry/sdk-trace'
import { within } from '../base/clock.ts'
import { ownVersion } from '../base/own-version.ts'
import type { Attributes, Span, Tracer } from './span.ts'

/** Spans that have ended and are not on their way yet; beyond them new ones are dropped. */
export const mostPendingSpans = 2_048

/** Spans in one request to the collector. */
export const batchSpans = 512

/** How long an ended span waits for others to be sent with. */
const batchMs = 5_000

/** How long a batch may take, with its retries. */
export const exportMs = 10_000

/** How long a hub that stops waits for its last spans. */
export const flushMs = 2_000

/** In characters, of the value of an attribute. */
export const longestValue = 1_024

export interface TracerOptions {
  /** The address of the collector; spans are posted to `v1/traces` below it. */
  readonly endpoint: URL
  /** Of a million requests that continue no trace, the number whose trace is recorded. */
  readonly samplingRatePerMillion: number
  readonly nodeName: string
  /** Called for spans that the collector has taken. */
  readonly onExported: (spans: number) => void
  /** Called for spans that it has not taken. */
  readonly onLost: (spans: number, cause?: Error) => void
}

/** Disposing sends what is pending, for `flushMs` at most. */
export type OpenTracer = Tracer & AsyncDisposable

/** Opens nothing before the first span has ended. */
export function openTracer(options: TracerOptions): OpenTracer {
  const exporter = new CountedExporter(
    new OTLPTraceExporter({ url: tracesUrl(options.endpoint), timeoutMillis: exportMs }),
    options,
  )
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.name': 'nodehub',
      'service.version': ownVersion(),
      'service.instance.id': options.nodeName,
      'k8s.node.name': options.nodeName,
    }),
    sampler: new ParentBasedSampler({
      root: new TraceIdRatioBasedSampler(options.samplingRatePerMillion / 1_000_000),
    }),
    spanLimits: { attributeValueLengthLimit: longestValue },
    spanProcessors: [
      new BatchSpanProcessor({
        exporter,
        maxQueueSize: mostPendingSpans,
        maxExportBatchSize: batchSpans,
        scheduledDelayMillis: batchMs,
        // The exporter's own limit comes first, and its result is counted.
        exportTimeoutMillis: 2 * exportMs,
      }),
    ],
  })
  const tracer = provider.getTracer('nodehub', ownVersion())
  return {
    begin: (name, attributes, parent) => {
      const context =
        parent === undefined ? ROOT_CONTEXT : propagator.extract(ROOT_CONTEXT, parent, ofFields)
      return begun(tracer, name, SpanKind.SERVER, attributes, context)
    },
    [Symbol.asyncDispose]: async () => {
      // What a failure loses is counted by the exporter.
      await within(
        flushMs,
        provider.shutdown().catch(() => undefined),
      )
    },
  }
}

const tracesUrl = ({ href }: URL): string => `${href.replace(/\/$/, '')}/v1/traces`

const propagator = new W3CTraceContextPropagator()

const ofFields = {
  get: (fields: { get(name: string): string | undefined }, name: string) => fields.get(name),
  keys: () => [],
}

const intoMap = {
  set: (fields: Map<string, string>, name: string, value: string) => void fields.set(name, value),
}

/** `undefined` where the sampler leaves the span out. */
function begun(
  tracer: SdkTracer,
  name: string,
  kind: SpanKind,
  attributes: Attributes,
  parent: Context,
): Span | undefined {
  const span = tracer.startSpan(name, { kind, attributes: { ...attributes } as never }, parent)
  return span.isRecording() ? recorded(tracer, span, parent) : undefined
}

function recorded(tracer: SdkTracer, span: SdkSpan, parent: Context): Span {
  const context = trace.setSpan(parent, span)
  const contextFields = new Map<string, string>()
  propagator.inject(context, contextFields, intoMap)
  const self: Span = {
    contextFields,
    // A recorded span's children are recorded: the sampler follows the parent.
    child: (name, kind, attributes) =>
      begun(tracer, name, kinds[kind], attributes, context) ?? self,
    set: (attributes) => void span.setAttributes({ ...attributes } as never),
    end: (error) => {
      if (!span.isRecording()) return
      if (error !== undefined) {
        span.setAttribute('error.type', error)
        span.setStatus({ code: SpanStatusCode.ERROR })
      }
      span.end()
    },
  }
  return self
}

const kinds = { client: SpanKind.CLIENT, internal: SpanKind.INTERNAL }

type Counts = Pick<TracerOptions, 'onExported' | 'onLost'>

/** Passes spans on, and counts what becomes of them. */
class CountedExporter implements SpanExporter {
  readonly #exporter: SpanExporter
  readonly #counts: Counts

  constructor(exporter: SpanExporter, counts: Counts) {
    this.#exporter = exporter
    this.#counts = counts
  }

  export(spans: ReadableSpan[], onResult: (result: ExportResult) => void): void {
    this.#exporter.export(spans, (result) => {
      if (result.code === ExportResultCode.SUCCESS) this.#counts.onExported(spans.length)
      else this.#counts.onLost(spans.length, result.error)
      onResult(result)
    })
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown()
  }
}
