import t from 'tap'
import { rolloutOf } from '../../../src/cluster/components/rollout.ts'

const deployment = (status: object, spec: object = {}) =>
  ({
    metadata: { generation: 2 },
    spec: { replicas: 2, ...spec },
    status: { observedGeneration: 2, ...status },
  }) as never

const whole = { replicas: 2, updatedReplicas: 2, availableReplicas: 2 }

void t.test('a Deployment has settled when no pod of an older template is left', (t) => {
  const stateOf = (status: object): string => rolloutOf('Deployment', deployment(status)).state
  t.equal(stateOf(whole), 'settled')
  t.equal(stateOf({ ...whole, replicas: 3 }), 'progressing', 'an old pod is left')
  t.equal(stateOf({ ...whole, availableReplicas: 1 }), 'progressing')
  t.equal(stateOf({ ...whole, observedGeneration: 1 }), 'progressing', 'not seen yet')
  const conditions = [{ type: 'Progressing', reason: 'ProgressDeadlineExceeded' }]
  t.equal(stateOf({ ...whole, updatedReplicas: 1, conditions }), 'failed')
  t.equal(stateOf({ ...whole, conditions }), 'settled', 'late, but whole')
  t.end()
})

void t.test('a DaemonSet counts nodes, and one with OnDelete waits for nothing', (t) => {
  const status = { desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 2 }
  t.strictSame(rolloutOf('DaemonSet', deployment(status)), {
    state: 'progressing',
    available: 2,
    wanted: 3,
  })
  t.equal(rolloutOf('DaemonSet', deployment({ ...status, numberAvailable: 3 })).state, 'settled')
  const onDelete = { updateStrategy: { type: 'OnDelete' } }
  t.equal(rolloutOf('DaemonSet', deployment(status, onDelete)).state, 'settled')
  t.end()
})
