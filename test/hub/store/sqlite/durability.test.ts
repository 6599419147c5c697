import t from 'tap'
import { outlivesPowerCut } from '../../../../src/hub/store/sqlite/durability.ts'
import type { ScopeKey } from '../../../../src/hub/store/sqlite/address.ts'
import { pack, type Apply, type Put } from '../../../../src/hub/store/sqlite/messages.ts'
import { object, pod } from '../../../contracts/object-store.ts'

const scope: ScopeKey = ['node', 'application/json;object', '', 'v1', 'pods']
const collection = { scope, namespace: '', labelSelector: '', fieldSelector: '' }

const putting = (restored: boolean): Put => ({
  kind: 'put',
  scope,
  gvk: pod,
  objects: pack([object('a', 1)]),
  restored,
  confirmedAt: 1,
})

const applying = (types: Apply['types']): Apply => ({
  kind: 'apply',
  collection,
  whole: true,
  types,
  objects: pack(types.map((_, at) => object(`pod-${at}`, at + 1))),
  previous: false,
  since: '',
  version: '9',
  confirmedAt: 0,
})

void t.test('a power cut brings back no object whose deletion was shown', async (t) => {
  t.ok(outlivesPowerCut(applying(['ADDED', 'DELETED', 'MODIFIED'])))
  t.ok(outlivesPowerCut({ kind: 'forget', below: '', scope, namespace: 'default', name: 'a' }))
  t.ok(outlivesPowerCut({ kind: 'invalidate', collection }), 'nor what was not to be served')
  t.ok(outlivesPowerCut(putting(true)), 'nor a state that a restore has undone')
})

void t.test('a change does not wait for the disk', async (t) => {
  t.notOk(outlivesPowerCut(applying(['ADDED', 'MODIFIED'])))
  t.notOk(outlivesPowerCut(applying([])), 'nor does a bookmark')
  t.notOk(outlivesPowerCut(putting(false)))
})
