/**
 * Takes the pictures of docs/status-page.md: a hub with the demonstration's cluster, online,
 * offline and after a restart without a link. Run it where there is a browser, and look at them.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { seedCluster, simulateNode } from '../../src/cli/demo-cluster.ts'
import { Browser } from '../kit/browser.ts'
import { CloudServer, podsOfNode } from '../kit/cloud.ts'
import { startTestHub } from '../kit/hub.ts'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { until } from '../kit/until.ts'

const folder = join(import.meta.dirname, '..', '..', 'docs', 'status-page')
const stack: (() => unknown)[] = []
const parts = { teardown: (act: () => unknown): void => void stack.unshift(act) }
try {
  const sandbox = await startSandbox({ tls: false })
  parts.teardown(() => sandbox[Symbol.asyncDispose]())
  seedCluster(sandbox)
  const cloud = new CloudServer(sandbox, undefined)
  const hub = await startTestHub(parts, {
    upstreams: [cloud],
  })
  const node = simulateNode(hub.url)
  const browser = await Browser.start(parts)
  const take = async (name: string, state: RegExp, options = {}): Promise<void> => {
    const token = readFileSync(hub.inspectTokenFile, 'utf8')
    const page = await browser.open(`http://127.0.0.1:${hub.hub.opsPort}/#token=${token}`, options)
    await page.shows('#state', state)
    await page.shows('[data-section=boot]', /come back/)
    await page.shows('[data-section=collections]', /pods/)
    writeFileSync(join(folder, `${name}.png`), await page.screenshot())
  }
  await until('the node to have read its pods', async () => {
    const { body } = await hub.ops.get('/inspect/status')
    const { boot } = JSON.parse(body.toString()) as { boot: { pods: { items: object[] } } | null }
    return (boot?.pods.items.length ?? 0) > 0
  })
  await take('online', /Online/, { width: 1120, height: 740 })
  await cloud.unplug()
  await hub.offline()
  await hub.as('kubelet', { encoding: 'protobuf' }).get(podsOfNode)
  await take('offline', /Offline/, { width: 1120, height: 700, dark: true })
  await take('narrow', /Offline/, { width: 390, height: 844 })
  await node[Symbol.asyncDispose]()
  await hub.restart()
  await hub.offline()
  await take('after-a-reboot', /Offline/, { width: 1120, height: 740 })
} finally {
  for (const act of stack) await act()
}
