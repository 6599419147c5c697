import t from 'tap'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { noDisk, smallDisk } from '../kit/disk.ts'
import { signal, startHubProcess, type HubProcess } from '../kit/hub-process.ts'
import { startCloud } from '../kit/hub.ts'

// Processes are started here, which takes its time on a machine with much to do.
t.setTimeout(300_000)

const flags = ['--shutdown-grace-period=1s', '--log-level=debug']

/** Has more logged than lies between a process and a reader that has stopped reading. */
async function logMuch(hub: HubProcess): Promise<void> {
  const client = hub.as('kubelet')
  const name = 'n'.repeat(4_000)
  for (let i = 0; i < 400; i++) await client.get(`/api/v1/namespaces/default/pods/${name}-${i}`)
}

void t.test('a hub whose log is not read exits with 1 on SIGTERM', async (t) => {
  const cloud = await startCloud(t)
  const hub = await startHubProcess(t, { upstreams: [cloud], flags })
  hub.stopReading()
  await logMuch(hub)
  signal(hub.pid, 'SIGTERM')
  t.equal(await hub.ended(), 1)
})

void t.test(
  'a hub with a full disk, whose log is not read, exits on SIGTERM',
  { skip: noDisk() },
  async (t) => {
    const cloud = await startCloud(t)
    cloud.addPods('a', 'b')
    const disk = smallDisk(t, 8)
    const rootDir = join(disk.path, 'root')
    mkdirSync(rootDir)
    const hub = await startHubProcess(t, { upstreams: [cloud], flags }, rootDir)
    disk.fill()
    hub.stopReading()
    await logMuch(hub)
    signal(hub.pid, 'SIGTERM')
    t.equal(await hub.ended(), 1)
  },
)

void t.test('a hub whose event loop is blocked is killed after SIGTERM', async (t) => {
  const cloud = await startCloud(t)
  const program = join(import.meta.dirname, 'blocked-when-stopped.ts')
  const hub = await startHubProcess(t, { upstreams: [cloud], flags }, undefined, program)
  signal(hub.pid, 'SIGTERM')
  t.equal(await hub.ended(), null, 'a thread of its own has killed it')
})
