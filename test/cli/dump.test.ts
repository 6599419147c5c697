import t from 'tap'
import { lstatSync, mkdtempSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startCloud } from '../kit/hub.ts'
import { signal, startHubProcess } from '../kit/hub-process.ts'

t.setTimeout(300_000) // a process that starts takes its time on a busy machine

void t.test('the report follows no symlink', async (t) => {
  const victim = join(t.testdir({ victim: 'precious' }), 'victim')
  const rootDir = mkdtempSync(join(tmpdir(), 'nodehub-dump-'))
  const cloud = await startCloud(t)
  const hub = await startHubProcess(t, { upstreams: [cloud] }, rootDir)
  const file = join(rootDir, 'state', `nodehub.${hub.pid}.report.json`)
  symlinkSync(victim, file)
  signal(hub.pid, 'SIGQUIT')
  await hub.says(/what the process is doing/)
  t.equal(readFileSync(victim, 'utf8'), 'precious')
  t.ok(lstatSync(file).isFile())
})

void t.test('on SIGQUIT the hub writes a report, and opens no debugger', async (t) => {
  const cloud = await startCloud(t)
  const hub = await startHubProcess(t, { upstreams: [cloud] })
  signal(hub.pid, 'SIGUSR1')
  signal(hub.pid, 'SIGQUIT')
  const line = (await hub.says(/^wrote what the process is doing/)) as { readonly file?: string }
  const file = line.file ?? ''
  t.match(file, `nodehub.${hub.pid}.report.json`)
  t.equal(statSync(file).mode & 0o777, 0o600)
  const report = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
  t.match(report, { javascriptStack: Object, javascriptHeap: Object, libuv: Array })
  t.notOk('environmentVariables' in report)
  t.equal((await hub.as('kubelet').get('/api/v1/nodes/edge-1')).status, 200, 'it goes on')
  t.notOk(
    hub.lines.some(({ msg }) => /debugger/i.test(msg)),
    'no debugger listens',
  )
  t.notOk(
    hub.lines.some(({ level }) => level === ''),
    'every line of the log is JSON',
  )
})
