import t from 'tap'
import { findBinaries } from '../kit/cluster/binaries.ts'
import { noControlPlane } from '../kit/control-plane.ts'
import { noKubelet } from '../kit/kubelet.ts'
import { endureOutages } from './outages.ts'
import { kubeletWatches } from './watched-objects.ts'

t.setTimeout(600_000) // the first time client-go is compiled

const go = findBinaries(['go'])
const skip = noControlPlane() ?? noKubelet() ?? ('missing' in go ? go.missing : false)

void t.test(
  'through ten outages a kubelet and informers get every event once, and start no list, and no watch before a timeout',
  { skip, timeout: 600_000 },
  async (t): Promise<void> => {
    const endured = await endureOutages(t, 10)
    // The plan of a skipped test.
    if ('missing' in endured) return t.plan(0, endured.missing)
    const unwatched = kubeletWatches.filter((path) => !endured.kubeletWatches.includes(path))
    t.strictSame(unwatched, [], 'the kubelet watches what changes')
    t.strictSame(endured.begun, [])
    t.strictSame(endured.differences, [])
    t.ok(endured.events >= 100, `${endured.events} events for each informer`)
  },
)
