/** What docs/monitoring.md has a Prometheus read: both configurations, and the metrics. */
import t from 'tap'
import { readFileSync } from 'node:fs'
import { startCloud, startTestHub } from '../kit/hub.ts'
import { promtool } from '../kit/promtool.ts'

const folder = 'packaging/monitoring'

void t.test('promtool accepts both configurations', { skip: promtool.missing }, async (t) => {
  const receiver = t.testdir({
    'receiver.yaml': readFileSync(`${folder}/receiver.yaml`, 'utf8'),
    'alerts.yaml': readFileSync('packaging/cluster/chart/monitoring/alerts.yaml', 'utf8'),
  })
  for (const argv of [['--agent', `${folder}/agent.yaml`], [`${receiver}/receiver.yaml`]]) {
    const { code, output } = await promtool.run(['check', 'config', ...argv])
    t.equal(code, 0, output)
  }
})

void t.test('promtool finds no fault in /metrics', { skip: promtool.missing }, async (t) => {
  const hub = await startTestHub(t, { upstreams: [await startCloud(t)] })
  const { body } = await hub.ops.get('/metrics')
  const { output } = await promtool.run(['check', 'metrics'], body.toString())
  // Names of yurthub and of prom-client.
  t.notMatch(output, /^(?!node_yurthub_|nodejs_)\S/m)
})
