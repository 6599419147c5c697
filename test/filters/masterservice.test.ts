import t from 'tap'
import { masterservice } from '../../filters/masterservice.ts'
import { filterResult, createdFilter } from '../kit/filter-result.ts'

const address = { host: '169.254.2.1', port: 10268, forService: false }

void t.test(
  'a service of the same name elsewhere, and its neighbours, are left alone',
  async (t) => {
    const filter = createdFilter(masterservice, { hubAddress: address })
    const named = (name: string, namespace: string) => ({
      kind: 'Service',
      apiVersion: 'v1',
      metadata: { name, namespace, resourceVersion: '1' },
      spec: { clusterIP: '10.96.0.1', ports: [{ name: 'https', port: 443, targetPort: 6443 }] },
    })
    t.equal(filterResult(t, filter, named('kubernetes', 'kube-system')), 'left')
    t.equal(filterResult(t, filter, named('kubernetes-1', 'default')), 'left')
    t.not(filterResult(t, filter, named('kubernetes', 'default')), 'left')
  },
)

void t.test('without a hub address it does nothing', async (t) => {
  t.equal(
    masterservice.create({ hubAddress: null }, () => undefined),
    undefined,
  )
})
