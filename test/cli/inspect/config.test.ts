import t from 'tap'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from '../../../src/cli/inspect/inspect.ts'
import type { HubConfigReport } from '../../../src/hub/wiring/config-map.ts'
import { configMaps } from '../../kit/cloud.ts'
import { startCloud } from '../../kit/hub.ts'
import { signal, startHubProcess } from '../../kit/hub-process.ts'
import { until } from '../../kit/until.ts'
import { said, type Said } from '../../kit/terminal.ts'

t.setTimeout(300_000) // a process that starts takes its time on a busy machine

const token = 'abcdef.0123456789abcdef'

const run = (...argv: string[]): Promise<Said> =>
  said((terminal) => inspect.run(['config', ...argv], terminal))

void t.test('inspect config shows settings in force and pending ones', async (t) => {
  const cloud = await startCloud(t)
  cloud.sandbox.create(configMaps, {
    metadata: { namespace: 'kube-system', name: 'yurt-hub-cfg' },
    data: { cache_agents: 'my-agent', no_such_filter: 'x' },
  })
  const rootDir = mkdtempSync(join(tmpdir(), 'nodehub-inspect-'))
  const file = join(rootDir, 'config.yaml')
  const write = (more: string): void =>
    writeFileSync(file, `server-addr: ${cloud.url}\nnode-name: edge-1\n${more}`)
  write('')
  const hub = await startHubProcess(t, { upstreams: [], flags: [`--config=${file}`] }, rootDir)
  const flags = [
    `--serve-port=${hub.opsPort}`,
    `--token-file=${join(rootDir, 'state', 'inspect.token')}`,
  ]
  const table = await until('the ConfigMap to be in force', async () => {
    const { out } = await run(...flags)
    return out.includes('my-agent') && out
  })
  t.match(table, /^ConfigMap kube-system\/yurt-hub-cfg adds .*\n {2}cache_agents: my-agent$/m)
  t.match(table, /ignored, as it is not known: no_such_filter/)

  write('nodepool-name: north\nlb-mode: priority\n')
  const from = hub.lines.length
  signal(hub.pid, 'SIGHUP')
  await hub.says(/nodepool-name.* takes effect at the next start/, from)
  await cloud.unplug()
  // Reports within 50 ms are the same.
  const { settings } = await until('the settings to have changed', async () => {
    const { code, out } = await run(...flags, '-o', 'json')
    return code === 0 && out.includes('north') && (JSON.parse(out) as HubConfigReport)
  })
  const of = (name: string) => settings.find((one) => one.name === name)
  t.strictSame(['node-name', 'serve-port', 'lb-mode', 'log-level'].map(of), [
    {
      name: 'node-name',
      live: false,
      value: 'edge-1',
      source: 'file',
      origin: `${file}: node-name`,
    },
    {
      name: 'serve-port',
      live: false,
      value: String(hub.opsPort),
      source: 'flag',
      origin: '--serve-port',
    },
    { name: 'lb-mode', live: true, value: 'priority', source: 'file', origin: `${file}: lb-mode` },
    { name: 'log-level', live: true, value: 'info', source: 'default' },
  ])

  t.match(of('nodepool-name'), {
    value: '',
    next: { value: 'north', source: 'file', origin: `${file}: nodepool-name` },
  })

  const before = hub.lines.length
  write('lb-mod: priority\n')
  signal(hub.pid, 'SIGHUP')
  await hub.says(/the last good one stays/, before)
  const unusable = await until('the mistakes to be shown', async () => {
    const report = await run(...flags)
    return report.code === 1 && report
  })
  t.match(unusable.out, /^The changed configuration cannot be used.*\n.*lb-mod is not known/m)
  t.match(unusable.out, /^lb-mode +priority /m)
})

void t.test('without a hub it shows the flags’ settings', async (t) => {
  const flags = [
    '--server-addr=https://127.0.0.1:1',
    '--node-name=edge-7',
    `--join-token=${token}`,
    '--discovery-token-unsafe-skip-ca-verification',
  ]
  const { code, out } = await run('--', ...flags)
  t.equal(code, 0)
  t.match(out, /^node-name +edge-7 +--node-name +at the next start$/m)
  t.match(out, /^lb-mode +round-robin +default +live$/m)
  t.match(out, /^join-token +\[redacted\] /m)
  t.notMatch(out, token)
  const wrong = await run('--', '--serve-prot=1')
  t.equal(wrong.code, 2)
  t.match(wrong.err, /--serve-prot is not known, did you mean --serve-port/)
  t.match(wrong.err, /--server-addr/, 'all mistakes are reported')
})
