import t from 'tap'
import { findBinaries } from '../kit/cluster/binaries.ts'
import { noControlPlane } from '../kit/control-plane.ts'
import { sufferCuts } from './cuts.ts'

t.setTimeout(600_000) // the first time client-go is compiled

const go = findBinaries(['go'])
const skip = noControlPlane() ?? ('missing' in go ? go.missing : false)

/** Each kind of cut once; bench/README.md has the figures of a hundred. */
const rounds = 5

void t.test(
  "client-go's own reflectors match the API server after every cut, without a new list while the hub lives",
  { skip, timeout: 600_000 },
  async (t): Promise<void> => {
    const converged = await sufferCuts(t, rounds)
    // The plan of a skipped test.
    if ('missing' in converged) return t.plan(0, converged.missing)
    t.strictSame(converged.differences, [])
    t.equal(converged.reflectors, 20, 'five resources, two encodings, with WatchList and without')
    t.equal(converged.needless, 0, 'while the hub lives every watch goes on from its version')
  },
)
