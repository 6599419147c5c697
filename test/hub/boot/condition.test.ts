import t from 'tap'
import { conditionState } from '../../../src/hub/boot/condition.ts'
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
