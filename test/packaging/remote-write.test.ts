/** The configuration of docs/monitoring.md with a real Prometheus on both sides of a link. */
import t, { type Test } from 'tap'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../kit/free-port.ts'
import { onlineNode, goOnline, goOffline, startCloud, startTestHub } from '../kit/hub.ts'
import { promtool } from '../kit/promtool.ts'
import { until } from '../kit/until.ts'
import { link } from '../kit/wire/link.ts'

t.setTimeout(300_000)

const folder = 'packaging/monitoring'

interface Series {
  readonly metric: Readonly<Record<string, string>>
  readonly values: readonly (readonly [time: number, value: string])[]
}

/** A Prometheus with its files in a folder of its own; ready when this resolves. */
async function startPrometheus(t: Test, config: string, ...flags: readonly string[]) {
  const own = mkdtempSync(join(tmpdir(), 'nodehub-prometheus-'))
  const port = await freePort()
  mkdirSync(join(own, 'data'))
  const file = join(own, 'prometheus.yaml')
  writeFileSync(file, config)
  const argv = [`--config.file=${file}`, `--web.listen-address=127.0.0.1:${port}`, ...flags]
  const child = spawn(
    'prometheus',
    argv.map((flag) => flag.replace('$DATA', join(own, 'data'))),
    { stdio: 'ignore', env: { ...process.env, NODE_NAME: 'edge-1' } },
  )
  t.teardown(async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    rmSync(own, { recursive: true })
  })
  await once(child, 'spawn')
  const url = `http://127.0.0.1:${port}`
  await until('Prometheus to be ready', async () => (await fetch(`${url}/-/ready`)).ok)
  return { port, url }
}

/** The samples of the last minutes; `undefined` if there are none. */
async function samples(url: string, query: string): Promise<Series | undefined> {
  const answer = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(`${query}[5m]`)}`)
  const { data } = (await answer.json()) as {
    readonly data: { readonly result: readonly Series[] }
  }
  return data.result[0]
}

void t.test(
  'samples of an outage arrive by remote write once the link is back',
  { skip: promtool.missing },
  async (t) => {
    const { cloud, hub } = await onlineNode(t)
    const receiver = await startPrometheus(
      t,
      readFileSync(`${folder}/receiver.yaml`, 'utf8').replace('[alerts.yaml]', '[]'),
      '--web.enable-remote-write-receiver',
      '--storage.tsdb.path=$DATA',
    )
    const thin = await link(t, receiver.port)
    const agent = await startPrometheus(
      t,
      readFileSync(`${folder}/agent.yaml`, 'utf8')
        .replace('scrape_interval: 60s', 'scrape_interval: 1s')
        .replace('10267', String(hub.hub.opsPort))
        .replace('https://metrics.example.com', `http://127.0.0.1:${thin.port}`),
      '--enable-feature=agent,expand-external-labels',
      '--storage.agent.path=$DATA',
    )
    const online = (): Promise<Series | undefined> => samples(receiver.url, 'nodehub_online')
    const { metric } = await until('the first sample', online)
    t.match(metric, { job: 'nodehub', instance: 'edge-1', __name__: 'nodehub_online' })
    t.notOk('node_name' in metric)

    thin.down()
    await goOffline(cloud, hub)
    const scraped = await counter(agent.url, 'prometheus_agent_samples_appended_total')
    await until('the agent to scrape again and to be refused', async () => {
      const [now, retried] = await Promise.all([
        counter(agent.url, 'prometheus_agent_samples_appended_total'),
        counter(agent.url, 'prometheus_remote_storage_samples_retried_total'),
      ])
      // More than one scrape has.
      return now > scraped + 1_000 && retried > 0
    })
    await goOnline(cloud, hub)
    thin.up()
    const values = await until('both changes to arrive', async () => {
      const found = (await online())?.values.map(([, value]) => value).join('')
      return found !== undefined && /10+1/.test(found) && found
    })
    t.match(values, /^1+0+1+$/, 'the outage is in the metrics of the cloud')
    t.notOk(await samples(receiver.url, 'nodejs_heap_size_total_bytes'), 'left out')
  },
)

/** The first sample of one of Prometheus' own metrics. */
async function counter(url: string, name: string): Promise<number> {
  const body = await (await fetch(`${url}/metrics`)).text()
  return Number(new RegExp(`^${name}\\S* (\\d+)`, 'm').exec(body)?.[1] ?? 0)
}

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
