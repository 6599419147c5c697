import { mock } from 'node:test'
import t from 'tap'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { withAge, withStaleness } from '../../../src/hub/answers/replies.ts'
import { exchangeOf } from '../../kit/exchange.ts'

const asked = (agent: string) => exchangeOf('/api/v1/pods', { headers: { 'User-Agent': agent } })

void t.test('an answer of the cache says how old it is in seconds', async (t) => {
  mock.timers.enable({ apis: ['Date'], now: 1_000_000 })
  t.teardown(() => mock.timers.reset())
  t.equal(withAge(new HeaderList(), 990_001).get('age'), '9')
  t.equal(withAge(new HeaderList(), 1_000_001).get('age'), '0', 'a clock that was set back')
  t.equal(withAge(new HeaderList(), 0).get('age'), undefined, 'where it is not known')
})

void t.test('kubectl and k9s get a Warning, programs that only log it do not', async (t) => {
  const warned = (agent: string, confirmedAt = Date.UTC(2026, 0, 2, 3, 4, 5, 678)) =>
    withStaleness(new HeaderList(), asked(agent), confirmedAt).get('warning')
  const text =
    '299 - "answered from the node\'s cache: the cloud has not confirmed this since 2026-01-02T03:04:05Z"'
  for (const agent of ['kubectl/v1.35.0 (linux/amd64)', 'kubectl-1.33/v1.33.0', 'k9s/0.50']) {
    t.equal(warned(agent), text)
  }
  for (const agent of ['kubelet/v1.35.0', 'kube-proxy/v1.35.0', 'manager/v0.1']) {
    t.equal(warned(agent), undefined)
  }
  t.equal(warned('kubectl/v1.35.0', 0), undefined)
})
