import t from 'tap'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { noDisk, smallDisk } from '../kit/disk.ts'
import { startHubProcess } from '../kit/hub-process.ts'
import { startCloud } from '../kit/hub.ts'

// Processes are started here, which takes its time on a machine with much to do.
t.setTimeout(300_000)

void t.test(
  'a full disk is a few lines in the log, however many answers are not recorded',
  { skip: noDisk() },
  async (t) => {
    const cloud = await startCloud(t)
    const names = Array.from({ length: 50 }, (_, i) => `pod-${i}`)
    cloud.addPods(...names)
    const disk = smallDisk(t, 8)
    const rootDir = join(disk.path, 'root')
    mkdirSync(rootDir)
    const hub = await startHubProcess(t, { upstreams: [cloud] }, rootDir)
    disk.fill()
    const kubelet = hub.as('kubelet')
    for (const name of names) {
      t.equal((await kubelet.get(`/api/v1/namespaces/default/pods/${name}`)).status, 200)
    }
    await hub.says(/cannot record an answer/)
    const errors = hub.lines.filter(({ level }) => level === 'error')
    t.ok(errors.length <= 8, `${errors.length} lines`)
    t.notMatch(JSON.stringify(errors), /"stack"/)
  },
)
