import t from 'tap'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { manifests } from '../../src/cli/manifests.ts'
import { readConfig } from '../../src/config/config.ts'
import { listenerNames } from '../../src/config/passed-sockets.ts'
import { listenAddresses } from '../../src/hub/wiring/proxies.ts'
import { Client } from '../kit/client.ts'
import { podsOfNode } from '../kit/cloud.ts'
import { dummyUnit, dummyUnitName, joinedDummy } from '../../src/node/join/dummy-unit.ts'
import { findBinaries } from '../kit/cluster/binaries.ts'
import { plainNode } from '../kit/cluster/plain-node.ts'
import { freePort } from '../kit/free-port.ts'
import { nodehubProgram } from '../kit/hub-programs.ts'
import { startCloud } from '../kit/hub.ts'
import { hubFlags } from '../kit/hub-config.ts'
import { until } from '../kit/until.ts'

const tools = findBinaries(['systemd-socket-activate'])
const confining = findBinaries(['setpriv'])

void t.test(
  'a hub serves on the sockets that systemd holds for it, and systemd holds them on',
  { skip: 'missing' in tools && tools.missing },
  async (t) => {
    if ('missing' in tools) return
    const cloud = await startCloud(t)
    cloud.addPods('a')
    const [proxyPort, opsPort] = [await freePort(), await freePort()]
    const rootDir = mkdtempSync(join(tmpdir(), 'nodehub-activated-'))
    t.teardown(() => rmSync(rootDir, { recursive: true, force: true }))
    const flags = [
      ...hubFlags(rootDir, { upstreams: [cloud] }),
      `--serve-port=${opsPort}`,
      `--proxy-port=${proxyPort}`,
      '--proxy-secure-port=0',
    ]
    // Root without its capabilities, as by the unit: it still knows root by its socket.
    const confined =
      process.getuid?.() === 0 && !('missing' in confining)
        ? [confining.paths.setpriv, '--bounding-set=-all', '--inh-caps=-all', '--no-new-privs']
        : []
    const named = confined.length > 0 ? 'root' : 'node'
    const [command, args] = plainNode(
      nodehubProgram,
      'start',
      ...flags.map((flag) => flag.replace(/^(--anonymous-loopback)=.*/, `$1=${named}`)),
    )
    const systemd = spawn(
      tools.paths['systemd-socket-activate'],
      [
        `--listen=127.0.0.1:${opsPort}`,
        `--listen=127.0.0.1:${proxyPort}`,
        ...confined,
        command,
        ...args,
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    )
    let log = ''
    systemd.stderr.on('data', (text: Buffer) => (log += text.toString()))
    const over = once(systemd, 'exit')
    t.teardown(() => systemd.kill('SIGKILL'))
    await until('systemd to listen', () => log.includes('Listening on'), { describe: () => log })
    const kubelet = new Client({ url: `http://127.0.0.1:${proxyPort}`, component: 'kubelet' })
    t.strictSame((await kubelet.list(podsOfNode)).names, ['default/a'], 'the call that started it')
    const ops = new Client({ url: `http://127.0.0.1:${opsPort}`, component: 'prober' })
    t.equal((await ops.get('/readyz')).status, 200)
    const other = createServer().listen(proxyPort, '127.0.0.1')
    const [taken] = (await once(other, 'error')) as [Error]
    t.match(taken, { code: 'EADDRINUSE' })
    systemd.kill('SIGTERM')
    t.strictSame(await over, [0, null], log)
  },
)

/** The units that `nodehub manifests` prints, by name. */
async function printedUnits(...flags: readonly string[]): Promise<ReadonlyMap<string, string>> {
  let printed = ''
  const terminal = { out: (text: string) => (printed += text), err: (text: string) => t.fail(text) }
  await manifests.run(['--part=systemd', '--server-addr=https://a', ...flags], terminal)
  const parts = printed.split(/^# \/etc\/systemd\/system\/(.*)\n/m).slice(1)
  return new Map(parts.flatMap((name, i) => (i % 2 === 0 ? [[name, parts[i + 1] ?? '']] : [])))
}

for (const flags of [[], ['--proxy-port=961', '--proxy-secure-port=968', '--serve-port=967']]) {
  void t.test(
    `the sockets of the units are all those of the hub that they start: ${flags.join(' ')}`,
    async (t) => {
      const units = await printedUnits(...flags)
      t.strictSame([...units.keys()], ['nodehub.socket', 'nodehub-ipv6.socket', 'nodehub.service'])
      const streams = [...units.values()].flatMap((text) =>
        [...text.matchAll(/^ListenStream=(.*):(\d+)$/gm)].map(([, address = '', port]) => ({
          at: { address: address.replace(/^\[(.*)\]$/, '$1'), port: Number(port) },
        })),
      )
      const started = /^ExecStart=.* start (.*)$/m.exec(units.get('nodehub.service') ?? '')?.[1]
      const result = readConfig({
        // Here the kubelet has no certificate.
        argv: (started ?? '').split(' ').filter((word) => !word.startsWith('--bootstrap-mode')),
        env: { NODEHUB_BOOTSTRAP_MODE: 'anonymous' },
        hostname: 'n',
        readFile: () => '',
        passed: streams.map((socket, i) => ({ fd: 3 + i, ...socket })),
      })
      if ('mistakes' in result) throw new Error(result.mistakes.join('; '))
      for (const name of listenerNames) {
        const places = listenAddresses(result.config, name)
        t.equal(places.length, 2, name)
        t.ok(
          places.every((place) => 'fd' in place),
          'the hub opens none itself',
        )
      }
      t.equal(streams.length, 6)
    },
  )
}

void t.test('a unit can be had alone, and its words are quoted for systemd', async (t) => {
  let printed = ''
  const terminal = { out: (text: string) => (printed += text), err: (text: string) => t.fail(text) }
  const argv = ['--part=systemd', '--server-addr=https://a', '--unit=nodehub.service']
  await manifests.run([...argv, '--root-dir=/var/a $b %c', '--node-name=edge-1'], terminal)
  t.match(printed, /^\[Unit\]\n/)
  t.match(printed, '"--root-dir=/var/a $$b %%c"')
  t.match(printed, 'Environment=NODE_NAME=edge-1\n')
  t.match(printed, 'ReadWritePaths="/var/a $b %%c"\n')
})

const analyze = findBinaries(['systemd-analyze'])

void t.test(
  'systemd finds nothing wrong with the units',
  { skip: 'missing' in analyze && analyze.missing },
  async (t) => {
    if ('missing' in analyze) return
    const folder = mkdtempSync(join(tmpdir(), 'nodehub-units-'))
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    const paths = [...(await printedUnits())].map(([name, text]) => {
      const path = join(folder, name)
      // A program that is there, as the units' own will be.
      writeFileSync(path, text.replace('/usr/local/bin/node', process.execPath))
      return path
    })
    t.equal(paths.length, 3)
    let dummy = ''
    const terminal = { out: (text: string) => (dummy += text), err: (text: string) => t.fail(text) }
    await manifests.run(['--part=systemd', `--unit=${dummyUnitName}`], terminal)
    const byDefault = joinedDummy()
    t.equal(dummy.trimEnd(), byDefault && dummyUnit(byDefault).trimEnd())
    paths.push(join(folder, dummyUnitName))
    writeFileSync(join(folder, dummyUnitName), dummy)
    const { status, stderr } = spawnSync(analyze.paths['systemd-analyze'], ['verify', ...paths])
    t.strictSame([status, stderr.toString()], [0, ''])
    const judged = spawnSync(analyze.paths['systemd-analyze'], [
      'security',
      '--offline=true',
      // In tenths; the least that a unit can have is 0, and with no confinement it is 96.
      '--threshold=40',
      ...paths.filter((path) => path.endsWith('.service')),
    ])
    t.equal(judged.status, 0, judged.stdout.toString())
  },
)
