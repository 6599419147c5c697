import t from 'tap'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { heapMegabytes } from '../../src/cluster/install/workload.ts'
import { admissionBytes, conversionBytes } from '../../src/cluster/serve.ts'

const sources = new URL('../../src/cluster/', import.meta.url)

/** Reviews of as many bytes as are let in at once, of the values that take most when parsed. */
const reviewing = `
  const { reviewAdmission } = await import('${new URL('admission/review.ts', sources).href}')
  const { reviewConversion } = await import('${new URL('crd/conversion.ts', sources).href}')
  const dense = (bytes) => '[' + '{},'.repeat((bytes - 1_000) / 3) + '{}]'
  const slow = () => new Promise((resolve) => setTimeout(resolve, 500, undefined))
  const lookup = {
    pool: slow, poolNodes: async () => 0, nodeLabels: async () => ({}),
    context: async () => (await slow(), { pools: new Map(), namespaces: new Map() }),
  }
  const rules = { lookup, propagate: false }
  const admit = (bytes) => reviewAdmission('/mutate/pods', JSON.parse(
    '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u",' +
    '"kind":{"kind":"Pod"},"operation":"CREATE","namespace":"x",' +
    '"object":{"metadata":{},"spec":{},"j":' + dense(bytes) + '}}}'), rules)
  const all = [admit(8 * 1024 * 1024), admit(${admissionBytes} - 8 * 1024 * 1024)]
  const review = JSON.parse(
    '{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u",' +
    '"desiredAPIVersion":"apps.openyurt.io/v1beta2","objects":' + dense(${conversionBytes}) + '}}')
  try { reviewConversion(review) } catch {}
  await Promise.allSettled(all)
  console.log('all were answered')
`

async function answered(heap: number): Promise<{ code: number | null; out: string }> {
  const child = spawn(
    process.execPath,
    [`--max-old-space-size=${heap}`, '--input-type=module', '--eval', reviewing],
    { stdio: ['ignore', 'pipe', 'ignore'], env: {} },
  )
  const ended = once(child, 'exit') as Promise<[number | null]>
  const out = await text(child.stdout)
  const [code] = await ended
  return { code, out }
}

/** The bytes of heap of a byte of JSON, parsed, at worst: of `{},{},…`. */
const parsedFactor = 24

void t.test('reviews of values that take most, parsed, fit into the Deployment', async (t) => {
  const bodies = ((admissionBytes + conversionBytes) * parsedFactor) / 1024 / 1024
  t.ok(bodies + 100 <= heapMegabytes, `${bodies} MB of bodies in a heap of ${heapMegabytes} MB`)
  const { code, out } = await answered(heapMegabytes)
  t.equal(code, 0)
  t.equal(out.trim(), 'all were answered')
})
