import pino from 'pino'
import t from 'tap'
import type { Exchange } from '../../../src/http/exchange/exchange.ts'
import type { FilterDefinition } from '../../../src/hub/filter/filter.ts'
import { EnabledFilters } from '../../../src/hub/wiring/enabled-filters.ts'
import { createMetrics } from '../../../src/metrics/metrics.ts'
import { exchangeOf } from '../../kit/exchange.ts'
import { testConfig } from '../../kit/hub-config.ts'

/** Of a node whose kubelet has been shown no pod yet. */
const neverShown = { of: () => undefined, settle: () => undefined, areKept: true }

const flags = ['--server-addr=http://127.0.0.1:1', '--node-name=edge-1']

const enabled = (): EnabledFilters =>
  new EnabledFilters(testConfig(flags), neverShown, createMetrics(), pino({ level: 'silent' }))

const by = (component: string, url = '/api/v1/services'): Exchange =>
  exchangeOf(url, { headers: { 'User-Agent': `${component}/v1` } })

const own = (name: string): FilterDefinition => ({
  name,
  rules: [{ components: ['somebody'], group: '', resources: ['services'], verbs: ['list'] }],
  onError: 'pass',
  needs: [],
  create: () => undefined,
})

void t.test(
  'collections that filters act on are recorded, for added components, too',
  async (t) => {
    const filters = enabled()
    t.ok(filters.actOn(by('kube-proxy')))
    t.notOk(filters.actOn(by('somebody')))
    filters.components(new Map([['nodeportisolation', new Set(['somebody'])]]))
    t.ok(filters.actOn(by('somebody')))
    t.ok(filters.actOn(by('somebody', '/api/v1/services?watch=true')))
    t.notOk(filters.actOn(by('somebody', '/api/v1/nodes')))
    filters.components(new Map())
    t.notOk(filters.actOn(by('somebody')))
  },
)

void t.test(
  'filters of one’s own come after the built-in ones, each by a name of its own',
  async (t) => {
    const filters = enabled()
    filters.modules([own('mine')])
    t.ok(filters.actOn(by('somebody')), 'even while it has nothing to do')
    t.throws(() => filters.modules([own('masterservice')]), { message: /masterservice/ })
    t.throws(() => filters.modules([own('other'), own('other')]), { message: /other/ })
    t.ok(filters.actOn(by('somebody')), 'those before stay')
    filters.modules([])
    t.notOk(filters.actOn(by('somebody')))
  },
)
