import t from 'tap'
import { isTolerated } from '../../../src/api/kube/scheduling.ts'

void t.test('a pod tolerates a taint by its key, value and effect', (t) => {
  const taint = { key: 'edge', value: 'x', effect: 'NoSchedule' }
  t.notOk(isTolerated(taint, {}))
  t.ok(isTolerated(taint, { tolerations: [{ operator: 'Exists' }] }))
  t.ok(isTolerated(taint, { tolerations: [{ key: 'edge', value: 'x' }] }))
  t.notOk(isTolerated(taint, { tolerations: [{ key: 'edge', value: 'y' }] }))
  t.notOk(isTolerated(taint, { tolerations: [{ operator: 'Exists', effect: 'NoExecute' }] }))
  t.end()
})
