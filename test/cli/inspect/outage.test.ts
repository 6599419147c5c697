import t from 'tap'
import { inspect } from '../../../src/cli/inspect/inspect.ts'
import { addCsiNode, kubeletOf, startUp } from '../../kit/bootable.ts'
import { startCloud, startTestHub } from '../../kit/hub.ts'

void t.test('during an outage each report says what the hub has and lacks', async (t) => {
  const cloud = await startCloud(t)
  addCsiNode(cloud)
  const hub = await startTestHub(t, { upstreams: [cloud] })
  await startUp(kubeletOf(hub))
  await cloud.unplug()
  await hub.offline()
  const flags = [`--serve-port=${hub.hub.opsPort}`, `--token-file=${hub.inspectTokenFile}`]
  const run = async (what: string): Promise<{ code: number; out: string }> => {
    let out = ''
    const terminal = { out: (text: string) => (out += text), err: (text: string) => t.fail(text) }
    return { code: await inspect.run([what, ...flags], terminal), out }
  }

  const status = await run('status')
  t.equal(status.code, 0, 'offline the hub is ready')
  t.match(status.out, /on edge-1 is ready and offline since /)
  const upstreams = await run('upstreams')
  t.equal(upstreams.code, 1)
  t.match(upstreams.out, /^http\S+ +unhealthy /m)
  t.match(upstreams.out, /^API SERVER +LAST FAILED/m)
  const cache = await run('cache')
  t.equal(cache.code, 0)
  t.match(cache.out, /^pods +node +spec\.nodeName=edge-1 /m)
  t.match((await run('watches')).out, 'No component has a watch open.')
  t.match((await run('filters')).out, /^FILTER +STATE/)
  t.match((await run('certificates')).out, /^USE +VALID UNTIL[^]*^serving +20/m)
})
