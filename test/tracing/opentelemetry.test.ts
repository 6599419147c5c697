import t, { type Test } from 'tap'
import { turn } from '../../src/base/clock.ts'
import {
  batchSpans,
  longestValue,
  mostPendingSpans,
  openTracer,
  type OpenTracer,
} from '../../src/tracing/opentelemetry.ts'
import { otlpReceiver } from '../kit/otlp-receiver.ts'
import { until } from '../kit/until.ts'

/** A tracer that records every trace, and what it counts. */
function tracerAt(url: string, samplingRatePerMillion = 1_000_000) {
  const counts = { exported: 0, failed: 0 }
  const tracer = openTracer({
    endpoint: new URL(url),
    samplingRatePerMillion,
    nodeName: 'edge-1',
    onExported: (spans) => void (counts.exported += spans),
    onLost: (spans) => void (counts.failed += spans),
  })
  return { tracer, counts }
}

const record = (tracer: OpenTracer, spans: number): void => {
  for (let i = 0; i < spans; i++) tracer.begin('GET', {}, undefined)?.end()
}

const fields = (traceparent: string) => new Map([['traceparent', traceparent]])

void t.test('a stop sends all pending spans', async (t) => {
  const receiver = await otlpReceiver(t)
  const { tracer, counts } = tracerAt(`${receiver.url}/`)
  record(tracer, batchSpans + 3)
  await tracer[Symbol.asyncDispose]()
  t.strictSame(counts, { exported: batchSpans + 3, failed: 0 })
  t.equal(receiver.spans.length, batchSpans + 3)
  t.match(receiver.heads[0], { 'content-type': 'application/json' })
})

void t.test('a collector that does not answer does not hold up a stop', async (t) => {
  const receiver = await otlpReceiver(t, () => undefined)
  const { tracer, counts } = tracerAt(receiver.url)
  record(tracer, batchSpans)
  await receiver.receives(() => receiver.bodies.length === 1)
  await tracer[Symbol.asyncDispose]()
  t.strictSame(counts, { exported: 0, failed: 0 })
})

void t.test('spans that the collector refuses count as failed, and make room', async (t) => {
  const receiver = await otlpReceiver(t, (response) => void response.writeHead(400).end())
  const { tracer, counts } = tracerAt(receiver.url)
  record(tracer, 2 * mostPendingSpans)
  const most = mostPendingSpans + batchSpans
  await until('the pending ones', () => counts.failed >= mostPendingSpans)
  record(tracer, 1)
  await tracer[Symbol.asyncDispose]()
  t.ok(counts.failed > mostPendingSpans && counts.failed <= most + 1, `${counts.failed}`)
})

void t.test('a long value is cut', async (t) => {
  const receiver = await otlpReceiver(t)
  const { tracer } = tracerAt(receiver.url)
  tracer.begin('GET', { 'url.path': 'x'.repeat(5_000) }, undefined)?.end()
  await tracer[Symbol.asyncDispose]()
  t.equal(receiver.spans[0]?.attributes['url.path'], 'x'.repeat(longestValue))
})

void t.test('sampling', async (t) => {
  const receiver = await otlpReceiver(t)
  const ids = '0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331'
  const isRecorded = async (t: Test, rate: number, traceparent?: string): Promise<boolean> => {
    const { tracer } = tracerAt(receiver.url, rate)
    t.teardown(() => tracer[Symbol.asyncDispose]())
    const parent = traceparent === undefined ? undefined : fields(traceparent)
    return tracer.begin('GET', {}, parent) !== undefined
  }
  t.equal(await isRecorded(t, 0), false, 'no trace to continue, at a rate of 0')
  t.equal(await isRecorded(t, 1_000_000), true, 'no trace to continue, at the full rate')
  t.equal(await isRecorded(t, 0, `00-${ids}-01`), true, 'a sampled parent')
  t.equal(await isRecorded(t, 1_000_000, `00-${ids}-00`), false, 'a parent that is not sampled')
  for (const malformed of ['', '00-0-0-01', `ff-${ids}-01`, `00-${ids}`, `00-${ids}-01-x`])
    t.equal(await isRecorded(t, 0, malformed), false, `malformed: ${malformed}`)
})

void t.test("OpenTelemetry's variables give the header fields for the collector", async (t) => {
  const receiver = await otlpReceiver(t)
  process.env['OTEL_EXPORTER_OTLP_HEADERS'] = 'authorization=Bearer%20of-the-collector'
  const { tracer } = tracerAt(receiver.url)
  delete process.env['OTEL_EXPORTER_OTLP_HEADERS']
  record(tracer, 1)
  await tracer[Symbol.asyncDispose]()
  t.match(receiver.heads, [{ authorization: 'Bearer of-the-collector' }])
})

void t.test('an ended span does not change', async (t) => {
  const receiver = await otlpReceiver(t)
  const { tracer, counts } = tracerAt(receiver.url)
  const span = tracer.begin('GET', {}, undefined)
  span?.end()
  span?.set({ 'nodehub.source': 'hub' })
  span?.end('late')
  await turn()
  await tracer[Symbol.asyncDispose]()
  t.equal(counts.exported, 1)
  t.match(receiver.spans, [{ failed: false }])
  t.notHas(receiver.spans[0]?.attributes, { 'nodehub.source': 'hub' })
})
