import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { Condition } from './condition.ts'
import type { Teardown } from './wire/wire.ts'
import { portOf } from './wire/listening.ts'

/** A span as a collector receives it, with its attributes as an object. */
export interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly name: string
  readonly kind: 'internal' | 'server' | 'client'
  readonly failed: boolean
  readonly attributes: Readonly<Record<string, unknown>>
  readonly resource: Readonly<Record<string, unknown>>
}

/** A collector of OpenTelemetry: takes OTLP over HTTP, in JSON. */
export interface OtlpReceiver {
  readonly url: string
  readonly spans: readonly ReceivedSpan[]
  /** The bodies as they came. */
  readonly bodies: readonly string[]
  readonly heads: readonly IncomingHttpHeaders[]
  /** Resolves once a condition on these holds. */
  receives(holds: () => boolean): Promise<void>
}

/** `answer` answers a request whose body has come; by default it is taken. */
export async function otlpReceiver(
  t: Teardown,
  answer: (response: ServerResponse) => void = (response) => void response.end('{}'),
): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = []
  const bodies: string[] = []
  const heads: IncomingHttpHeaders[] = []
  const condition = new Condition()
  const server = createServer((request, response) => {
    if (request.method !== 'POST' || request.url !== '/v1/traces') {
      response.writeHead(404).end()
      return
    }
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString()
      bodies.push(body)
      heads.push(request.headers)
      spans.push(...spansIn(JSON.parse(body) as TracesData))
      answer(response)
      condition.changed()
    })
  })
  const port = await portOf(t, server)
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    bodies,
    heads,
    receives: (holds) => condition.until(holds),
  }
}

/** Of opentelemetry-proto's trace.proto, in its JSON mapping. */
interface TracesData {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] }
    readonly scopeSpans: readonly { readonly spans: readonly SpanData[] }[]
  }[]
}

interface KeyValue {
  readonly key: string
  readonly value: AnyValue
}

interface AnyValue {
  readonly stringValue?: string
  readonly intValue?: string | number
  readonly arrayValue?: { readonly values: readonly AnyValue[] }
}

interface SpanData {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly KeyValue[]
  readonly status: { readonly code?: number }
}

const kinds = ['unspecified', 'internal', 'server', 'client'] as const

const spansIn = ({ resourceSpans }: TracesData): ReceivedSpan[] =>
  resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) => spans.map((span) => spanOf(span, resource.attributes))),
  )

function spanOf(span: SpanData, resource: readonly KeyValue[]): ReceivedSpan {
  if (!/^[0-9a-f]{32}$/.test(span.traceId) || !/^[0-9a-f]{16}$/.test(span.spanId))
    throw new Error(`no span of OTLP: ${JSON.stringify(span)}`)
  if (!(BigInt(span.startTimeUnixNano) <= BigInt(span.endTimeUnixNano)))
    throw new Error(`it ends before it begins: ${JSON.stringify(span)}`)
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    parentSpanId: span.parentSpanId,
    name: span.name,
    kind: kinds[span.kind] as ReceivedSpan['kind'],
    failed: span.status.code === 2,
    attributes: asObject(span.attributes),
    resource: asObject(resource),
  }
}

const asObject = (pairs: readonly KeyValue[]): Readonly<Record<string, unknown>> =>
  Object.fromEntries(pairs.map(({ key, value }) => [key, plain(value)]))

const plain = ({ stringValue, intValue, arrayValue }: AnyValue): unknown =>
  arrayValue ? arrayValue.values.map(plain) : (stringValue ?? Number(intValue))
