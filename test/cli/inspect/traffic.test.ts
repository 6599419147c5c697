import t from 'tap'
import { inspect } from '../../../src/cli/inspect/inspect.ts'
import { startCloud, startTestHub, type TestHub } from '../../kit/hub.ts'
import { until } from '../../kit/until.ts'

async function run(hub: TestHub, ...argv: string[]): Promise<string> {
  let out = ''
  const terminal = { out: (text: string) => (out += text), err: (text: string) => t.fail(text) }
  const flags = [`--serve-port=${hub.hub.opsPort}`, `--token-file=${hub.inspectTokenFile}`]
  t.equal(await inspect.run(['traffic', ...flags, ...argv], terminal), 0)
  return out
}

interface Row {
  readonly component: string
  readonly resource: string
  readonly receivedBytes: number
  readonly sentBytes: number
  readonly requestBytes: number
  readonly answerBytes: number
}

/** The traffic of the kubelet's pods. */
async function podTraffic(hub: TestHub): Promise<Row | undefined> {
  const { traffic } = JSON.parse(await run(hub, '-o', 'json')) as { traffic: Row[] }
  return traffic.find((row) => row.component === 'kubelet' && row.resource === 'pods')
}

const aPod = '/api/v1/namespaces/default/pods/a'

void t.test('traffic is counted by direction, offline at the node alone, and kept', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  const hub = await startTestHub(t, { upstreams: [cloud] })
  await hub.online()
  const kubelet = hub.as('kubelet')
  const { body } = await kubelet.get(aPod)
  const patch = Buffer.from(JSON.stringify({ metadata: { labels: { a: 'b' } } }))
  const patched = await kubelet.send(aPod, {
    method: 'PATCH',
    body: patch,
    headers: { 'Content-Type': 'application/merge-patch+json' },
  })
  t.equal(patched.status, 200)
  const online = await podTraffic(hub)
  const both = body.byteLength + patched.body.byteLength
  t.match(online, { requestBytes: patch.byteLength, sentBytes: patch.byteLength })
  t.match(online, { answerBytes: both, receivedBytes: both })

  await cloud.unplug()
  await hub.offline()
  const offline = await kubelet.get(aPod)
  const counted = await until('the answer to be counted', async () => {
    const row = await podTraffic(hub)
    return row?.answerBytes === both + offline.body.byteLength && row
  })
  t.equal(counted.receivedBytes, both, 'nothing came from an API server')

  await hub.restart()
  t.match(await podTraffic(hub), { answerBytes: counted.answerBytes, receivedBytes: both })
  const table = await run(hub, '--days', '31')
  t.match(table, /^Bytes from \d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d \(UTC\)$/m)
  t.match(table, new RegExp(`^kubelet +pods +${both} +${patch.byteLength} `, 'm'))
})
