import t from 'tap'
import {
  conditionIn,
  conditionPatch,
  nextCondition,
  conditionState,
} from '../../../src/hub/boot/condition.ts'
import type { BootVerdict, PodVerdict } from '../../../src/hub/boot/verdict.ts'
import { cursorOf } from '../../../src/api/codec/cursor.ts'
import { encoded } from './rich-pod.ts'

const minute = 60_000
const now = Date.parse('2026-11-21T12:00:00Z')

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

void t.test('a condition is written when it changes, and every five minutes', async (t) => {
  const good = conditionState(verdict([]))
  const bad = conditionState(verdict([pod('a', false)]))
  const first = nextCondition(good, undefined, now)
  t.match(first, { status: 'True', lastHeartbeat: now, lastTransition: now })
  t.equal(nextCondition(good, first, now + 4 * minute), undefined)
  t.match(nextCondition(good, first, now + 5 * minute), {
    lastHeartbeat: now + 5 * minute,
    lastTransition: now,
  })
  t.match(nextCondition(good, first, now - 60 * minute), { lastHeartbeat: now - 60 * minute })
  const second = nextCondition(bad, first, now + minute)
  t.match(second, { status: 'False', lastTransition: now + minute })
  const worse = conditionState(verdict([pod('a', false), pod('b', false)]))
  t.match(nextCondition(worse, second, now + 2 * minute), {
    lastHeartbeat: now + 2 * minute,
    lastTransition: now + minute,
  })
})

void t.test('a condition is found in the Node that it was written to', async (t) => {
  const condition = nextCondition(conditionState(verdict([])), undefined, now)
  if (!condition) throw new Error('it was never written')
  const gvk = { group: '', version: 'v1', kind: 'Node' }
  for (const encoding of ['json', 'protobuf'] as const) {
    const { object } = encoded(encoding, gvk, {
      metadata: { name: 'edge-1' },
      ...conditionPatch(condition),
    })
    t.strictSame(conditionIn(cursorOf(encoding, gvk, object)), condition)
    const bare = encoded(encoding, gvk, { metadata: { name: 'edge-1' }, status: {} })
    t.equal(conditionIn(cursorOf(encoding, gvk, bare.object)), undefined)
  }
  // A status of 255 bytes, of which there is one.
  const broken = { namespace: '', name: '', uid: '', resourceVersion: '' }
  const bytes = Buffer.from([0x1a, 0xff, 0x01, 0x00])
  t.equal(conditionIn(cursorOf('protobuf', gvk, { ...broken, bytes })), undefined)
})
