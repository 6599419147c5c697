import t from 'tap'
import { happenedFrom } from '../../../bench/host-network/observed.ts'
import type { Change, State } from '../../../bench/host-network/series.ts'

const change = (ms: number, pod: string, state: State): Change => ({ ms, pod, state })

const both = [change(100, 'a', 'Serving'), change(200, 'b', 'Serving')]

void t.test('short of service is the time with fewer pods than before', async (t) => {
  const changes = [...both, change(1_000, 'a', 'Gone'), change(4_000, 'c', 'Serving')]
  t.strictSame(happenedFrom(900, 2, { changes, endMs: 9_000 }), {
    atMs: 900,
    shortMs: 3_000,
    noneMs: 0,
  })
})

void t.test('a pod that nothing takes the place of leaves no one short', async (t) => {
  const changes = [...both, change(1_000, 'a', 'Gone')]
  t.strictSame(happenedFrom(900, 2, { changes, endMs: 9_000 }), {
    atMs: 900,
    shortMs: 0,
    noneMs: 0,
  })
})

void t.test('what does not come back is missed until the looking ends', async (t) => {
  const changes = [...both, change(1_000, 'a', 'Stuck'), change(2_000, 'b', 'Stuck')]
  t.strictSame(happenedFrom(900, 2, { changes, endMs: 9_000 }), {
    atMs: 900,
    shortMs: 8_000,
    noneMs: 7_000,
  })
})

void t.test('a change at the very moment is of what happens', async (t) => {
  const changes = [
    ...both,
    change(1_000, 'a', 'Starting'),
    change(1_000, 'b', 'Starting'),
    change(3_000, 'a', 'Serving'),
    change(5_000, 'b', 'Shared'),
  ]
  t.strictSame(happenedFrom(1_000, 2, { changes, endMs: 9_000 }), {
    atMs: 1_000,
    shortMs: 4_000,
    noneMs: 2_000,
  })
})

void t.test('where none serves in the end, none is missed', async (t) => {
  const changes = [change(100, 'a', 'Stuck'), change(900, 'a', 'Gone')]
  t.strictSame(happenedFrom(500, 1, { changes, endMs: 2_000 }), {
    atMs: 500,
    shortMs: 0,
    noneMs: 0,
  })
})
