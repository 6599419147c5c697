import t from 'tap'
import { affinityAdmits, isTolerated } from '../../../src/api/kube/scheduling.ts'

const node = { name: 'edge-1', labels: { pool: 'a', cores: '4' } }

const required = (...terms: object[]) =>
  ({
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms },
      },
    },
  }) as never

void t.test('a pod goes where its node selector and one of its terms allow it', (t) => {
  t.ok(affinityAdmits({}, node))
  t.ok(affinityAdmits({ nodeSelector: { pool: 'a' } }, node))
  t.notOk(affinityAdmits({ nodeSelector: { pool: 'b' } }, node))
  t.notOk(affinityAdmits({ nodeSelector: { toString: 'a' } }, node), 'no label of that name')
  const more = { matchExpressions: [{ key: 'cores', operator: 'Gt', values: ['8'] }] }
  const named = { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['edge-1'] }] }
  t.notOk(affinityAdmits(required(more), node))
  t.ok(affinityAdmits(required(more, named), node), 'terms are alternatives')
  t.notOk(affinityAdmits(required({}), node), 'an empty term matches no node')
  t.end()
})

void t.test('a pod tolerates a taint by its key, value and effect', (t) => {
  const taint = { key: 'edge', value: 'x', effect: 'NoSchedule' }
  t.notOk(isTolerated(taint, {}))
  t.ok(isTolerated(taint, { tolerations: [{ operator: 'Exists' }] }))
  t.ok(isTolerated(taint, { tolerations: [{ key: 'edge', value: 'x' }] }))
  t.notOk(isTolerated(taint, { tolerations: [{ key: 'edge', value: 'y' }] }))
  t.notOk(isTolerated(taint, { tolerations: [{ operator: 'Exists', effect: 'NoExecute' }] }))
  t.end()
})
