import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { ChainState } from '../../../src/hub/filter/chain-state.ts'
import {
  mostCollections,
  ChainStateHistory,
  type ClientCollection,
} from '../../../src/hub/filter/chain-state-history.ts'
import { resourceVersion, type ResourceVersion } from '../../../src/api/kube/resource-version.ts'
import { nodeIdentity } from '../../../src/api/request/identity.ts'

const audience: ClientCollection = {
  identity: nodeIdentity,
  component: 'kube-proxy',
  gvr: { group: '', version: 'v1', resource: 'services' },
  namespace: undefined,
  labelSelector: '',
  fieldSelector: '',
}

const state = (inputs: string): ChainState => ({ chain: '[["a",""]]', inputs, acts: true })
const [one, two, three] = [state('1'), state('2'), state('3')]

const at = (version: number): ResourceVersion => {
  const known = resourceVersion(String(version))
  if (!known) throw new Error('no version')
  return known
}

const under = (shown: ChainStateHistory, version: number): string[] | undefined =>
  shown.statesAt(audience, at(version))?.map(({ inputs }) => inputs)

function place(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'nodehub-shown-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'shown.json')
}

void t.test('a list settles what its client holds', async (t) => {
  const shown = new ChainStateHistory()
  t.equal(under(shown, 10), undefined, 'of whom nothing is known')
  await shown.begin(audience, one)
  shown.recordList(audience, one, '10')
  t.strictSame(under(shown, 10), ['1'])
  t.strictSame(under(shown, 12), ['1'], 'and what came later')
  t.equal(under(shown, 9), undefined, 'who is before it has it from elsewhere')
  t.equal(shown.begin(audience, one), undefined, 'nothing is to be written for more of the same')
})

void t.test('a resumed watch may hold the state before or after a difference', async (t) => {
  const shown = new ChainStateHistory()
  await shown.begin(audience, one)
  shown.recordList(audience, one, '10')
  await shown.begin(audience, two, at(15))
  t.strictSame(under(shown, 12), ['2', '1'], 'events sent again may have been of the new one')
  t.strictSame(under(shown, 15), ['2', '1'])
  t.strictSame(under(shown, 16), ['2'], 'a client that is further has taken it')
  shown.recordDelivery(audience, two)
  t.strictSame(under(shown, 15), ['2'])
})

void t.test('an old list settles nothing for a client that is further', async (t) => {
  const shown = new ChainStateHistory()
  await shown.begin(audience, one)
  shown.recordList(audience, one, '10')
  await shown.begin(audience, two, at(15))
  shown.recordList(audience, two, '12')
  t.strictSame(under(shown, 14), ['2', '1'], 'another client may have come as far under the first')
  t.strictSame(under(shown, 15), ['2', '1'])
  t.strictSame(under(shown, 16), ['2'])
})

void t.test('a list that takes long settles nothing that was shown meanwhile', async (t) => {
  const shown = new ChainStateHistory()
  await shown.begin(audience, one)
  await shown.begin(audience, two, at(10))
  shown.recordList(audience, one, '10')
  t.strictSame(under(shown, 10), ['2', '1'])
})

void t.test('a list that ends late hides no state that another client has', async (t) => {
  const shown = new ChainStateHistory()
  await shown.begin(audience, one)
  shown.recordList(audience, one, '100')
  await shown.begin(audience, two, at(100))
  shown.recordDelivery(audience, two)
  shown.recordList(audience, one, '100')
  t.strictSame(under(shown, 100), ['2', '1'])
  t.strictSame(under(shown, 101), ['2'])
})

void t.test('a list of a restored cluster settles an earlier version', async (t) => {
  const shown = new ChainStateHistory()
  await shown.begin(audience, one)
  shown.recordList(audience, one, '100')
  await shown.begin(audience, one)
  shown.recordList(audience, one, '7')
  t.strictSame(under(shown, 7), ['1'])
})

void t.test(
  'a list of a restored cluster settles an earlier version than all states',
  async (t) => {
    const shown = new ChainStateHistory()
    await shown.begin(audience, one)
    shown.recordList(audience, one, '100')
    await shown.begin(audience, two, at(110))
    t.equal(under(shown, 7), undefined)
    shown.recordList(audience, two, '7')
    t.strictSame(under(shown, 7), ['2', '1'])
    t.strictSame(under(shown, 105), ['2', '1'], 'as before')
    shown.recordList(audience, two, '5')
    t.strictSame(under(shown, 5), ['2', '1'])
    await shown.begin(audience, three, at(9))
    t.strictSame(under(shown, 10), ['3'])
  },
)

void t.test('a list of a restored cluster counts beside as many states as are kept', async (t) => {
  const shown = new ChainStateHistory()
  for (let version = 100; version < 110; version++)
    await shown.begin(audience, state(String(version)), at(version))
  shown.recordList(audience, state('109'), '7')
  t.strictSame(under(shown, 7), ['109', '108', '107', '106'])
})

void t.test('the number of states is bounded', async (t) => {
  const shown = new ChainStateHistory()
  await shown.begin(audience, one)
  shown.recordList(audience, one, '10')
  for (let version = 11; version < 20; version++) {
    await shown.begin(audience, state(String(version)), at(version))
  }
  t.equal(under(shown, 10), undefined)
  t.strictSame(under(shown, 17), ['19', '18', '17', '16'])
})

void t.test('a client that never lists is sent to list only once', async (t) => {
  const shown = new ChainStateHistory()
  shown.recordRelist(audience, one)
  t.strictSame(under(shown, 5), ['1'])
  shown.recordRelist(audience, two)
  t.strictSame(under(shown, 5), ['2'])
  shown.recordList(audience, two, '10')
  await shown.begin(audience, three, at(12))
  shown.recordRelist(audience, three)
  t.strictSame(under(shown, 12), ['3', '2'], 'of who lists that tells nothing')
})

void t.test('a state is on the disk before it is shown', async (t) => {
  const file = place(t)
  const shown = new ChainStateHistory(file)
  await shown.begin(audience, one)
  shown.recordList(audience, one, '10')
  await shown.begin(audience, two, at(15))
  // Nothing is closed: the process has just died.
  const next = new ChainStateHistory(file)
  t.strictSame(under(next, 15), ['2', '1'])
  t.strictSame(under(next, 16), ['2'])
  t.equal(readFileSync(file, 'utf8').split('"inputs"').length, 3, 'each state once')
})

void t.test('a damaged file counts as none', async (t) => {
  const file = place(t)
  await new ChainStateHistory(file).begin(audience, one, at(10))
  const kept = JSON.parse(readFileSync(file, 'utf8')) as unknown[]
  writeFileSync(file, JSON.stringify(kept.slice(1)))
  t.equal(under(new ChainStateHistory(file), 10), undefined)
  writeFileSync(file, '[{]')
  t.equal(under(new ChainStateHistory(file), 10), undefined)
})

void t.test('a failed write is reported, and the state is shown all the same', async (t) => {
  const failures: unknown[] = []
  const shown = new ChainStateHistory(join(place(t), '\0'), (cause) => failures.push(cause))
  await shown.begin(audience, one)
  t.equal(failures.length, 1)
})

void t.test('beyond the limit of components the one unseen for longest has to list', async (t) => {
  const shown = new ChainStateHistory()
  const named = (component: string): ClientCollection => ({ ...audience, component })
  for (let i = 0; i <= mostCollections; i++) {
    await shown.begin(named(String(i)), one)
    shown.recordList(named(String(i)), one, '10')
  }
  const known = (component: string): boolean =>
    shown.statesAt(named(component), at(12)) !== undefined
  t.strictSame(['0', '1', String(mostCollections)].map(known), [false, true, true])
})
