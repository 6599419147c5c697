import t from 'tap'
import { valueAt, listAt, objectAt, textAt, withAt } from '../../../src/api/kube/json-at.ts'

const pod = { metadata: { name: 'a', labels: { b: 'c' } }, spec: { containers: [1] } }

void t.test('a missing path reads as an empty value', async (t) => {
  t.equal(valueAt(pod, 'metadata', 'labels', 'b'), 'c')
  t.equal(valueAt(pod, 'metadata', 'name', 'length'), undefined)
  t.equal(valueAt(pod, 'constructor'), undefined)
  t.equal(textAt(pod, 'spec', 'containers'), '')
  t.strictSame(objectAt(null, 'a'), {})
  t.strictSame(listAt(pod, 'spec', 'containers'), [1])
  t.strictSame(listAt(pod, 'metadata'), [])
})

void t.test('a member is set or taken out in a copy', async (t) => {
  t.strictSame(withAt({}, ['a', 'b'], 1), { a: { b: 1 } })
  t.strictSame(valueAt(withAt(pod, ['metadata', 'labels', 'b'], undefined), 'metadata'), {
    name: 'a',
    labels: {},
  })
  t.equal(withAt(pod, ['status', 'phase'], undefined), pod, 'and nothing is made to take it out of')
  t.strictSame(pod.metadata.labels, { b: 'c' }, 'the original stays')
})

void t.test('a member of any name is a member', async (t) => {
  const odd = withAt({}, ['__proto__', 'a'], 1)
  t.equal(JSON.stringify(odd), '{"__proto__":{"a":1}}')
  t.equal(valueAt(odd, '__proto__', 'a'), 1)
})
