import t from 'tap'
import { findBinaries } from '../kit/cluster/binaries.ts'
import { noControlPlane } from '../kit/control-plane.ts'
import { sufferMisfortunes } from './two-servers.ts'

t.setTimeout(600_000) // two control planes and their load share what cores there are

const kubectl = findBinaries(['kubectl'])
const skip = noControlPlane() ?? ('missing' in kubectl ? kubectl.missing : false)

/**
 * Each of the two is killed, frozen and stopped once; bench/README.md has the figures of a hundred
 * rounds.
 */
const rounds = 6

/** What a client may be told of a write that may have been done. */
const fateUnknown = /^(50[34] |Error: socket hang up|Error: read ECONNRESET)/

void t.test(
  'while either of two API servers is killed, frozen or stopped, no read fails, no acknowledged write is lost',
  { skip, timeout: 600_000 },
  async (t) => {
    const suffered = await sufferMisfortunes(t, rounds)
    t.strictSame(suffered.readErrors, [])
    t.strictSame(suffered.lost, [])
    t.strictSame(suffered.anomalies, [], 'time never goes backwards')
    t.strictSame(suffered.unseen, [], 'a watch that goes on sees everything')
    t.strictSame(
      suffered.writeErrors.filter((error) => !fateUnknown.test(error)),
      [],
      'a write fails only where its fate is unknown',
    )
    t.ok(suffered.answers > 0 && suffered.kubectlRuns > 0)
    t.comment(`${suffered.answers} answers, ${suffered.writeErrors.length} writes of unknown fate`)
  },
)
