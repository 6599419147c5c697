import t from 'tap'
import { DecisionCache } from '../../../src/hub/filter/decision-cache.ts'
import type { ApiObject } from '../../../src/api/kube/object.ts'

const pod = { group: '', version: 'v1', kind: 'Pod' }

const object = (name: string, text: string): ApiObject => ({
  namespace: 'n',
  name,
  uid: name,
  resourceVersion: '1',
  bytes: Buffer.from(text),
})

const edited = (before: ApiObject, text: string): ApiObject => ({
  ...before,
  bytes: Buffer.from(text),
})

void t.test('an edited object is cached as what the edit changed', async (t) => {
  const cache = new DecisionCache(1_000_000)
  const cases: readonly (readonly [before: string, after: string])[] = [
    ['{"a":1,"c":3}', '{"a":1,"b":2,"c":3}'],
    ['{"a":1,"b":2,"c":3}', '{"a":1,"c":3}'],
    ['{"a":1}', '{"a":11}'],
    ['{"a":11}', '{"a":1}'],
    ['{"a":[1,2,3,4]}', '{"a":[2,4]}'],
    ['aaaa', 'aa'],
    ['', 'x'],
    ['x', ''],
  ]
  for (const [before, after] of cases) {
    const one = object(before, before)
    cache.set(0, pod, 'json', one, edited(one, after))
    t.strictSame(cache.get(0, pod, 'json', one), edited(one, after))
  }
})

void t.test('a decision holds for the same bytes of the same object only', async (t) => {
  const cache = new DecisionCache(1_000_000)
  const one = object('a', 'text')
  cache.set(0, pod, 'json', one, 'left')
  t.equal(cache.get(0, pod, 'json', one), 'left')
  t.equal(cache.get(0, pod, 'json', edited(one, 'tExt')), undefined)
  t.equal(cache.get(0, pod, 'json', { ...one, uid: 'b' }), undefined)
  t.equal(cache.get(0, pod, 'json', { ...one, resourceVersion: '2' }), undefined)
  t.equal(cache.get(0, pod, 'protobuf', one), undefined)
  t.equal(cache.get(1, pod, 'json', one), undefined)
})

void t.test('decisions are bounded in bytes, the oldest forgotten first', async (t) => {
  const cache = new DecisionCache(100_000)
  const objects = Array.from({ length: 20 }, (_, at) => object(`${at}`, '{}'))
  for (const one of objects)
    cache.set(0, pod, 'json', one, edited(one, `{"a":"${'x'.repeat(8_000)}"}`))
  const kept = objects.filter((one) => cache.get(0, pod, 'json', one) !== undefined)
  t.ok(kept.length > 5 && kept.length < 13, `${kept.length} are kept`)
  t.strictSame(kept, objects.slice(-kept.length))
})
