import t from 'tap'
import { conditionState, nextReport, type NodeReport } from '../../../src/hub/boot/condition.ts'
import type { BootVerdict, PodVerdict } from '../../../src/hub/boot/verdict.ts'

const pod = (name: string, ready: boolean): PodVerdict => ({
  namespace: 'plant',
  name,
  ready,
  problems: [],
  old: [],
})

const verdict = (pods: readonly PodVerdict[], nodeReady = true): BootVerdict => ({
  ready: nodeReady && pods.every(({ ready }) => ready),
  at: '2026-11-21T12:00:00Z',
  node: {
    name: 'edge-1',
    ready: nodeReady,
    unread: false,
    problems: nodeReady
      ? []
      : [{ reason: 'missing', resource: 'services', namespace: '', name: '', message: '' }],
  },
  pods,
})

void t.test('the condition’s status, reason and message', async (t) => {
  t.strictSame(conditionState(verdict([pod('a', true)])), {
    status: 'True',
    reason: 'EverythingKept',
    message: 'the node and its pods (1) would come back without a link',
  })
  t.strictSame(conditionState(verdict([pod('a', false)], false)), {
    status: 'False',
    reason: 'NodeNotKept',
    message: 'the node would not come back without a link: services',
  })
  const many = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => pod(name, false))
  t.strictSame(conditionState(verdict([...many, pod('z', true)])), {
    status: 'False',
    reason: 'PodsNotKept',
    message:
      '7 of 8 pods would not come back without a link: plant/a, plant/b, plant/c, plant/d, plant/e and 2 more',
  })
})

const minute = 60_000
const saying = { status: 'True', reason: 'EverythingKept', message: 'all' } as const
const written: NodeReport = {
  condition: { ...saying, lastHeartbeat: 0, lastTransition: 0 },
  report: 'as it was',
}

void t.test('a report is written when the verdict changes, and every five minutes', async (t) => {
  t.match(nextReport(saying, 'as it was', undefined, minute), { report: 'as it was' })
  t.equal(nextReport(saying, 'as it was', written, 4 * minute), undefined)
  t.match(nextReport(saying, 'as it was', written, 5 * minute), {
    condition: { lastHeartbeat: 5 * minute, lastTransition: 0 },
  })
  t.match(nextReport({ ...saying, status: 'False' }, 'as it was', written, 1), {
    condition: { status: 'False', lastTransition: 1 },
  })
})

void t.test('a link that comes and goes is worth a report every two minutes', async (t) => {
  t.equal(nextReport(saying, 'online anew', written, minute), undefined)
  t.match(nextReport(saying, 'online anew', written, 2 * minute), { report: 'online anew' })
})
