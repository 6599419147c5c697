import t from 'tap'
import { ownVersion } from '../../src/base/own-version.ts'
import { hubReportIn, type HubReport } from '../../src/api/kube/hub-report.ts'
import { newestSchema } from '../../src/hub/store/sqlite/schema.ts'
import type { SeenRequest } from '../../src/sandbox/requests.ts'
import { nodeName, nodes } from '../kit/cloud.ts'
import { startCloud, startTestHub, type CloudServer } from '../kit/hub.ts'
import { setClock } from '../kit/set-clock.ts'
import { until } from '../kit/until.ts'

const reporting = { boot: { refreshMs: 0, condition: false, report: true } }

const reportOf = (cloud: CloudServer): HubReport | undefined =>
  hubReportIn(cloud.sandbox.get(nodes, nodeName) ?? {})

const isPatch = ({ method, path }: SeenRequest): boolean =>
  method === 'PATCH' && path === `/api/v1/nodes/${nodeName}/status`

void t.test(
  'a hub reports its version and schema on its Node, again after a restart',
  async (t) => {
    const clock = setClock(t)
    const cloud = await startCloud(t)
    const hub = await startTestHub(t, { upstreams: [cloud], config: reporting })
    const report = await until('a report', () => reportOf(cloud))
    t.match(report, { version: ownVersion(), schema: newestSchema, failing: [], refused: [] })
    clock.forward(2_000)
    await hub.restart()
    await until('a later start', () => reportOf(cloud)?.started !== report.started)
  },
)

void t.test(
  'the hub’s refusals are in its report, which it writes at intervals only',
  async (t) => {
    const clock = setClock(t)
    const cloud = await startCloud(t)
    const hub = await startTestHub(t, { upstreams: [cloud], config: reporting })
    await until('a report', () => reportOf(cloud))
    const headers = { Host: 'elsewhere.example' }
    t.equal((await hub.as('flanneld').open('/api/v1/nodes', { headers })).statusCode, 403)
    clock.forward(5_000)
    t.equal(cloud.sandbox.requests.filter(isPatch).length, 1, 'the pause after a write is not over')
    clock.forward(40_000)
    await until('the refusal', () => reportOf(cloud)?.refused.length === 1)
    t.strictSame(reportOf(cloud)?.refused, ['403 flanneld'])
  },
)

void t.test('without --hub-report nothing is written to the Node', async (t) => {
  const clock = setClock(t)
  const cloud = await startCloud(t)
  const hub = await startTestHub(t, { upstreams: [cloud] })
  await hub.online()
  clock.forward(60_000)
  t.equal(cloud.sandbox.requests.some(isPatch), false)
})
