import t from 'tap'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { noDisk, smallDisk } from '../kit/disk.ts'
import { HubProcess, startHubProcess } from '../kit/hub-process.ts'
import { startCloud } from '../kit/hub.ts'
import type { Teardown } from '../kit/wire/wire.ts'
import { laterLog } from '../kit/log-on-disk.ts'
import { rootFolder } from '../kit/root-folder.ts'

// Processes are started here, which takes its time on a machine with much to do.
t.setTimeout(300_000)

const nowhere = { upstreams: [{ url: 'http://127.0.0.1:1' }] }

/** Starts a hub that cannot run, and resolves to what it says at last. */
async function lastWords(t: Teardown, rootDir: string, ...flags: string[]): Promise<string> {
  const hub = await HubProcess.refused(t, { ...nowhere, flags }, rootDir)
  const line = await hub.says(/^the hub cannot run: /)
  const code = await hub.ended()
  if (code !== 1) throw new Error(`it ended with ${code}`)
  if (JSON.stringify(hub.lines).includes('"stack"')) throw new Error('it prints a stack')
  return line.msg
}

void t.test('a second hub in a folder names the first’s process', async (t) => {
  const first = await startHubProcess(t, { upstreams: [await startCloud(t)] })
  const state = join(first.rootDir, 'state')
  const said = await lastWords(t, first.rootDir)
  t.match(said, `another hub, process ${first.pid}, uses ${state}`)
  t.match(said, /stop it, or give this one a --root-dir of its own$/)
})

void t.test('a cache of a later release is reported with both versions', async (t) => {
  const rootDir = rootFolder(t)
  mkdirSync(join(rootDir, 'state', 'cache'), { recursive: true })
  laterLog(join(rootDir, 'state', 'cache'))
  const said = await lastWords(t, rootDir)
  t.match(said, /the cache was written by a later release: its log has the format 1000/)
  t.match(said, /this release reads formats up to \d+\. .* move the files away/)
})

void t.test('a --root-dir that is a file is named', async (t) => {
  const rootDir = rootFolder(t)
  writeFileSync(join(rootDir, 'state'), '')
  t.match(await lastWords(t, rootDir), `--root-dir=${join(rootDir, 'state')} cannot be used`)
})

void t.test('a folder that cannot be made is named with its flag', async (t) => {
  const rootDir = rootFolder(t)
  writeFileSync(join(rootDir, 'file'), '')
  const cache = join(rootDir, 'file', 'cache')
  const said = await lastWords(t, rootDir, `--disk-cache-path=${cache}`)
  t.match(
    said,
    `--disk-cache-path=${cache} cannot be used: mkdir ${cache} (ENOTDIR): it is no folder`,
  )
})

void t.test(
  'a --root-dir on a read-only file system is reported',
  { skip: noDisk() },
  async (t) => {
    const disk = smallDisk(t, 8)
    disk.readOnly()
    const said = await lastWords(t, disk.path)
    t.match(said, `--root-dir=${join(disk.path, 'state')} cannot be used`)
    t.match(said, /EROFS\): its file system is read-only/)
  },
)
