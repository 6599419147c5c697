import t from 'tap'
import { writeFileSync, mkdtempSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { turn } from '../../src/base/clock.ts'
import type { Client } from '../kit/client.ts'
import { podsOfNode, type CloudServer } from '../kit/cloud.ts'
import { startCloud } from '../kit/hub.ts'
import { signal, startHubProcess } from '../kit/hub-process.ts'

t.setTimeout(120_000) // a process that starts takes its time on a busy machine

const aPod = '/api/v1/namespaces/default/pods/a'

/** Gets an object, again and again, until told that it is enough; resolves to every status that was answered. */
function asking(client: Client): { enough(): Promise<readonly number[]> } {
  let over = false
  const statuses: number[] = []
  const done = (async () => {
    while (!over) statuses.push((await client.get(aPod)).status)
    return statuses
  })()
  return {
    enough: () => {
      over = true
      return done
    },
  }
}

/** Whether somebody else could listen there. */
async function canBeTaken(port: number): Promise<boolean> {
  const server = createServer()
  const taken = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => resolve(true))
  })
  server.close()
  await turn() // an address in use is told without a turn of the loop
  return taken
}

/** Tries to take the port, until told that it is enough; resolves to how often that succeeded. */
function coveting(port: number): { enough(): Promise<number> } {
  let over = false
  let taken = 0
  const done = (async () => {
    while (!over) taken += (await canBeTaken(port)) ? 1 : 0
    return taken
  })()
  return {
    enough: () => {
      over = true
      return done
    },
  }
}

/** Watches as client-go does: from the last version seen, again when a watch has ended; until `count` events were seen. */
async function watching(client: Client, from: string, count: number): Promise<readonly string[]> {
  let resourceVersion = from
  const seen: string[] = []
  while (seen.length < count) {
    const watch = await client.watch(podsOfNode, { resourceVersion })
    if (watch.status !== 200) throw new Error(`a watch was answered ${watch.status}`)
    for (let event = await watch.next(); event; event = await watch.next()) {
      const { name, resourceVersion: version } = event.object['metadata'] as Record<string, string>
      resourceVersion = version ?? ''
      seen.push(`${event.type} ${name}`)
      if (seen.length === count) break
    }
    watch.hangUp()
  }
  return seen
}

void t.test('a hub hands over, and nobody is refused, cut off or told a thing twice', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  const hub = await startHubProcess(t, { upstreams: [cloud] })
  const kubelet = hub.as('kubelet')
  t.equal((await kubelet.get(aPod)).status, 200)
  const asked = [asking(kubelet), asking(kubelet)]
  const coveted = [hub.proxyPort, hub.securePort, hub.opsPort].map(coveting)
  const rounds = ['1', '2']
  const names = rounds.flatMap((round) => [`before-${round}`, `after-${round}`])
  const { resourceVersion } = await kubelet.list(podsOfNode)
  const watched = watching(kubelet, resourceVersion, names.length)
  let { pid } = hub
  for (const round of rounds) {
    cloud.addPods(`before-${round}`)
    const from = hub.lines.length
    signal(pid, 'SIGUSR2')
    const line = await hub.says(/^the next process serves/, from)
    t.not(line.pid, pid)
    pid = line.pid ?? 0
    cloud.addPods(`after-${round}`)
  }
  t.equal(await hub.ended(), 0, 'the first process has ended well')
  t.strictSame(
    await watched,
    names.map((name) => `ADDED ${name}`),
  )
  const statuses = (await Promise.all(asked.map((each) => each.enough()))).flat()
  t.ok(statuses.length > 10)
  t.ok(statuses.every((status) => status === 200))
  for (const each of coveted) t.equal(await each.enough(), 0, 'nobody else could take the port')
  t.equal((await hub.ops.get('/readyz')).status, 200)
})

void t.test('what was recorded before is there after', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a', 'b')
  const hub = await startHubProcess(t, { upstreams: [cloud] })
  const { names, resourceVersion } = await hub.as('kubelet').list(podsOfNode)
  signal(hub.pid, 'SIGUSR2')
  await hub.says(/^the next process serves/)
  const from = hub.lines.length
  await cloud.unplug()
  await hub.says(/^offline/, from)
  const offline = await hub.as('kubelet').list(podsOfNode)
  t.strictSame([offline.names, offline.resourceVersion], [names, resourceVersion])
})

void t.test('where the next process dies, the one before it serves as before', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  const hub = await startHubProcess(t, { upstreams: [cloud] })
  const kubelet = hub.as('kubelet')
  const { resourceVersion } = await kubelet.list(podsOfNode)
  const watch = await kubelet.watch(podsOfNode, { resourceVersion })
  const asked = asking(kubelet)
  signal(hub.pid, 'SIGUSR2')
  const { pid } = await hub.says(/^the next process starts/)
  signal(pid ?? 0, 'SIGKILL')
  await hub.says(/this one serves on: it was ended by SIGKILL/)
  cloud.addPods('b')
  t.equal((await watch.next())?.type, 'ADDED', 'the watch has not even noticed')
  t.ok((await asked.enough()).every((status) => status === 200))
  const from = hub.lines.length
  signal(hub.pid, 'SIGUSR2')
  await hub.says(/^the next process serves/, from)
  t.equal(await watch.end(), 'ended', 'and there may be another try')
})

void t.test('where this process dies meanwhile, the next one serves all the same', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  const hub = await startHubProcess(t, { upstreams: [cloud] })
  const kubelet = hub.as('kubelet')
  // It stops for as long as this is under way.
  using _frozen = cloud.sandbox.faults.freeze(({ path }) => path === aPod)
  const seen = cloud.sandbox.nextRequest(({ path }) => path === aPod)
  const underWay = kubelet.get(aPod)
  await seen
  signal(hub.pid, 'SIGUSR2')
  await hub.says(/^the next process starts/)
  await hub.says(/^the next process is ready/)
  signal(hub.pid, 'SIGKILL')
  await t.rejects(underWay)
  t.strictSame((await kubelet.list(podsOfNode)).names, ['default/a'], 'nobody was refused')
})

void t.test('a next process that could not serve is not let to', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  const rootDir = mkdtempSync(join(tmpdir(), 'nodehub-handover-'))
  const file = join(rootDir, 'config.yaml')
  writeFileSync(file, 'lb-mode: priority\n')
  const hub = await startHubProcess(t, { upstreams: [cloud], flags: [`--config=${file}`] }, rootDir)
  writeFileSync(file, 'lb-mode: whatever\n')
  signal(hub.pid, 'SIGUSR2')
  await hub.says(/this one serves on: it ended with 2/)
  t.equal((await hub.as('kubelet').get(aPod)).status, 200)
})

void t.test('a hub that is told to stop does not hand over first', async (t) => {
  const cloud: CloudServer = await startCloud(t)
  const hub = await startHubProcess(t, { upstreams: [cloud] })
  signal(hub.pid, 'SIGUSR2')
  await hub.says(/^the next process starts/)
  signal(hub.pid, 'SIGTERM')
  t.equal(await hub.ended(), 0)
  t.ok(await canBeTaken(hub.proxyPort), 'nobody was left behind')
})
