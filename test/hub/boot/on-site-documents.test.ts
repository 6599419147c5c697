import t from 'tap'
import { mostSchemas, schemaIndex, schemasOf } from '../../../src/hub/boot/on-site-documents.ts'
import { FakeKubeletCache } from './fake-kubelet-cache.ts'

const known = (names: readonly string[]): FakeKubeletCache => {
  const cache = new FakeKubeletCache('protobuf')
  const paths = Object.fromEntries(names.map((name) => [name, {}]))
  cache.cachedDocuments.push({ url: schemaIndex, accept: 'application/json', confirmedAt: 1 })
  cache.bodies.set(schemaIndex, Buffer.from(JSON.stringify({ paths })))
  return cache
}

const groupsIn = (cache: FakeKubeletCache): string[] => [
  ...new Set(schemasOf()(cache).map(({ url }) => url.slice(schemaIndex.length + 1))),
]

void t.test(
  'the schemas of at most 128 groups are wanted, first those that are read most',
  async (t) => {
    const many = Array.from({ length: 200 }, (_, i) => `apis/g${i}.example/v1`)
    const groups = groupsIn(known([...many, 'apis/apps/v1', 'api/v1', '.well-known', 'version']))
    t.equal(groups.length, mostSchemas)
    t.strictSame(groups.slice(0, 2), ['api/v1', 'apis/apps/v1'])
  },
)

void t.test('without an index, or with one that is none, no schema is wanted', async (t) => {
  t.strictSame(groupsIn(new FakeKubeletCache('protobuf')), [])
  const broken = known([])
  broken.bodies.set(schemaIndex, Buffer.from('<html>'))
  t.strictSame(groupsIn(broken), [])
})
