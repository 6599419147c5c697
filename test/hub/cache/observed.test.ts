import t from 'tap'
import { ObservedVersions } from '../../../src/hub/cache/observed.ts'
import { resourceVersion } from '../../../src/api/kube/resource-version.ts'
import { nodeIdentity, tokenHolder } from '../../../src/api/request/identity.ts'
import { pods, services } from '../../kit/cloud.ts'

const ofPods = { identity: nodeIdentity, gvr: pods }

const observed = (stored?: string): ObservedVersions =>
  new ObservedVersions({ observedVersion: () => resourceVersion(stored) })

void t.test('the newest observed version counts, for each identity and resource', async (t) => {
  const versions = observed()
  t.equal(versions.of(ofPods), undefined)
  for (const version of ['9', '10', '8', '', 'x1']) versions.note(ofPods, version)
  t.equal(versions.of(ofPods), '10')
  t.equal(versions.of({ identity: nodeIdentity, gvr: { ...pods, version: 'v2' } }), '10')
  t.equal(versions.of({ identity: nodeIdentity, gvr: services }), undefined)
  t.equal(versions.of({ identity: tokenHolder('x'), gvr: pods }), undefined)
})

void t.test('versions observed before a restart come from the store', async (t) => {
  const versions = observed('20')
  versions.note(ofPods, '15')
  t.equal(versions.of(ofPods), '20')
  versions.note(ofPods, '21')
  t.equal(versions.of(ofPods), '21')
})

void t.test('a consistent read that is older reveals a restored cluster', async (t) => {
  const versions = observed('20')
  versions.noteConsistent(ofPods, '12', resourceVersion('20'))
  t.equal(versions.of(ofPods), '12')
  versions.note(ofPods, '13')
  versions.noteConsistent(ofPods, '12', resourceVersion('12'))
  t.equal(versions.of(ofPods), '13', 'one that came late does not')
  versions.noteConsistent(ofPods, '14', resourceVersion('13'))
  t.equal(versions.of(ofPods), '14')
})
