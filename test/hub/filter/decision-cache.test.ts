import t from 'tap'
import { DecisionCache } from '../../../src/hub/filter/decision-cache.ts'
import type { ApiObject } from '../../../src/api/kube/object.ts'

const pod = { group: '', version: 'v1', kind: 'Pod' }

const object = (name: string, size: number): ApiObject => ({
  namespace: 'n',
  name,
  uid: name,
  resourceVersion: '1',
  bytes: Buffer.alloc(size, name),
})

void t.test('verdicts are bounded in bytes, the oldest forgotten first', async (t) => {
  const remembered = new DecisionCache(100_000)
  const objects = Array.from({ length: 20 }, (_, at) => object(String.fromCharCode(97 + at), 8_000))
  for (const one of objects) remembered.set(0, pod, 'json', one, 'left')
  const kept = objects.filter((one) => remembered.get(0, pod, 'json', one) === 'left')
  t.ok(kept.length > 5 && kept.length < 13, `${kept.length} are kept`)
  t.strictSame(kept, objects.slice(-kept.length))
})

void t.test('what an edited object takes counts too', async (t) => {
  const remembered = new DecisionCache(100_000)
  const big = { ...object('a', 10), bytes: Buffer.alloc(20_000) }
  remembered.set(0, pod, 'json', object('a', 10), big)
  t.equal(remembered.get(0, pod, 'json', object('a', 10)), undefined, 'too large to be kept')
})
