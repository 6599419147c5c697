import t from 'tap'
import { tokenHolder, type Identity } from '../../../src/api/request/identity.ts'
import { newestRecord, newestRecords } from '../../../src/hub/answers/newest-records.ts'
import {
  collection,
  head,
  json,
  keyOf,
  object,
  pod,
  replace,
} from '../../contracts/object-store.ts'
import { open } from '../store/log/opened.ts'

const [a, b] = [tokenHolder('a'), tokenHolder('b')]
const gvr = { group: 'example.com', version: 'v1', resource: 'projects' }

const project = (name: string, version: number) => {
  const metadata = { name, uid: 'u', resourceVersion: `${version}` }
  const bytes = JSON.stringify({ apiVersion: 'example.com/v1', kind: 'Project', metadata })
  return object(name, version, { namespace: '', bytes: Buffer.from(bytes) })
}

void t.test('what one caller is not shown may be there for another', async (t) => {
  await using store = await open(t.testdir())
  const source = { store, reach: 'everyone' } as const
  const listed = (identity: Identity, names: readonly string[]) => {
    const partition = { identity, representation: json }
    const objects = names.map((name) => project(name, 14))
    return replace(store, collection({ gvr, partition }), head(20), objects)
  }
  const found = (name: string) => {
    const record = newestRecord({ gvr, namespace: '', name }, source)
    return typeof record === 'object' ? record.resourceVersion : record
  }
  const all = async () => {
    const newest = await newestRecords({ gvr, labelSelector: '', fieldSelector: '' }, source)
    return [newest?.records.map(({ key }) => key.name), newest?.covering?.resourceVersion]
  }
  await listed(a, ['of-a'])
  t.equal(found('of-b'), 'absent')
  t.strictSame(await all(), [['of-a'], '20'])
  const partition = { identity: b, representation: json }
  const kind = { ...pod, group: gvr.group, kind: 'Project' }
  await store.put(keyOf('of-b', { gvr, namespace: '', partition }), kind, project('of-b', 15))
  t.equal(found('of-b'), '15')
  t.equal(found('of-neither'), undefined, 'b may be shown it')
  t.strictSame(await all(), [['of-a', 'of-b'], undefined], 'there may be more')
  await listed(b, ['of-b'])
  t.equal(found('of-neither'), 'absent')
})
