import t from 'tap'
import { addressOf } from '../../../../src/hub/store/sqlite/address.ts'
import {
  CollectionState,
  type EventBatch,
} from '../../../../src/hub/store/sqlite/collection-state.ts'
import { collection } from '../../../contracts/object-store.ts'

const batch = (version: string): EventBatch => ({ changes: [], version, since: '' })

void t.test('a collection may be forgotten once all its writes are answered', async (t) => {
  const state = new CollectionState(addressOf(collection()), false)
  t.ok(state.idle)
  const [first, second] = [state.accepted(batch('5')), state.accepted(batch('6'))]
  t.notOk(state.idle)
  first(false)
  t.notOk(state.idle, 'one is still to be answered')
  second(false)
  t.ok(state.idle)
})

void t.test('a collection that missed a write is kept until a list repairs it', async (t) => {
  const state = new CollectionState(addressOf(collection()), false)
  state.accepted(batch('5'))(true)
  t.ok(state.unfit)
  t.notOk(state.idle)
})
