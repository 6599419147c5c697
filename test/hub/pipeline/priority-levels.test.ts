import t from 'tap'
import type { Claim } from '../../../src/http/exchange/exchange.ts'
import {
  priorityLevelOf,
  priorityLevels,
  PriorityShares,
  type PriorityLevel,
} from '../../../src/hub/pipeline/priority-levels.ts'
import { claimOf } from '../../kit/exchange.ts'

const claim = (holds: () => boolean): Claim => claimOf({ holds })

/** What each level is offered, lowest first, and how much of it fits. */
function taken(total: number, offered: Readonly<Partial<Record<PriorityLevel, number>>>) {
  const shares = new PriorityShares(() => total)
  for (const level of priorityLevels) {
    for (let i = 0; i < (offered[level] ?? 0); i++) if (shares.fits(level)) shares.take(level, 1)
  }
  return priorityLevels.map((level) => shares.taken(level))
}

void t.test('a caller’s level is what its connection or its token proves', async (t) => {
  t.equal(priorityLevelOf({}), 'node')
  t.equal(priorityLevelOf({ claim: claim(() => true) }), 'workload')
  t.equal(priorityLevelOf({ claim: claim(() => false) }), 'unproven')
})

void t.test('each level has a share that the levels below it cannot take', async (t) => {
  const flood = 1_000
  t.strictSame(taken(100, { unproven: flood }), [10, 0, 0])
  t.strictSame(taken(100, { workload: flood }), [0, 75, 0])
  t.strictSame(taken(100, { node: flood }), [0, 0, 100])
  t.strictSame(taken(100, { unproven: flood, workload: flood, node: flood }), [10, 65, 25])
  t.strictSame(taken(2, { unproven: flood, node: flood }), [1, 0, 1], 'the fewest there can be')
})

void t.test('a level beyond its limit takes nothing from higher ones', async (t) => {
  const shares = new PriorityShares(() => 100)
  shares.take('unproven', 60)
  shares.take('workload', 64)
  t.ok(shares.fits('workload'))
  shares.take('workload', 60)
  t.notOk(shares.fits('workload'))
  t.ok(shares.fits('node', 25))
  t.notOk(shares.fits('node', 26))
  t.equal(shares.overfull, 'unproven')
  shares.take('unproven', -50)
  t.equal(shares.overfull, 'workload')
  shares.take('workload', -64)
  t.equal(shares.overfull, undefined)
})

void t.test('the most that was taken at a time is read once', async (t) => {
  const shares = new PriorityShares(() => 100)
  shares.take('node', 3)
  shares.take('workload', 2)
  shares.take('node', -3)
  t.equal(shares.allTaken, 2)
  t.equal(shares.mostTaken(), 5)
  t.equal(shares.mostTaken(), 2, 'of what was taken since')
})
