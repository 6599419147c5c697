import t from 'tap'
import type { ChainState } from '../../../src/hub/filter/chain-state.ts'
import {
  filtersChanged,
  mostCollections,
  ShownStates,
  shownUnknown,
  type ClientCollection,
} from '../../../src/hub/filter/shown-states.ts'
import { resourceVersion, type ResourceVersion } from '../../../src/api/kube/resource-version.ts'
import { nodeIdentity } from '../../../src/api/request/identity.ts'

const collection: ClientCollection = {
  identity: nodeIdentity,
  component: 'kube-proxy',
  gvr: { group: '', version: 'v1', resource: 'services' },
  namespace: undefined,
  labelSelector: '',
  fieldSelector: '',
}

const state = (text: string): ChainState => ({ text, acts: true })
const [one, two] = [state('1'), state('2')]

const at = (version: number): ResourceVersion => {
  const known = resourceVersion(String(version))
  if (!known) throw new Error('no version')
  return known
}

void t.test('a client that was away while something changed has to list', (t) => {
  const shown = new ShownStates()
  shown.listed(collection, one, '10')
  t.equal(shown.faultAt(collection, two, at(10)), filtersChanged)
  shown.listed(collection, two, '15')
  t.equal(shown.faultAt(collection, two, at(12)), shownUnknown)
  t.equal(shown.faultAt(collection, two, at(15)), undefined)
  t.equal(shown.faultAt(collection, one, at(16)), filtersChanged, 'as they were once more')
  t.end()
})

void t.test('a list of a restored cluster counts from its own version on', (t) => {
  const shown = new ShownStates()
  shown.listed(collection, one, '100')
  shown.listed(collection, one, '7')
  t.equal(shown.faultAt(collection, one, at(7)), undefined)
  t.end()
})

void t.test('beyond the limit of collections the one unseen for longest has to list', (t) => {
  const shown = new ShownStates()
  const of = (component: number) => ({ ...collection, component: String(component) })
  for (let component = 0; component <= mostCollections; component++)
    shown.listed(of(component), one, '10')
  t.equal(shown.faultAt(of(0), one, at(10)), shownUnknown)
  t.equal(shown.faultAt(of(mostCollections), one, at(10)), undefined)
  t.end()
})
