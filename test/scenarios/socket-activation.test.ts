import t from 'tap'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../../src/config/config.ts'
import { Client } from '../kit/client.ts'
import { podsOfNode } from '../kit/cloud.ts'
import { findBinaries } from '../kit/cluster/binaries.ts'
import { plainNode } from '../kit/cluster/plain-node.ts'
import { freePort } from '../kit/free-port.ts'
import { startCloud } from '../kit/hub.ts'
import { hubFlags } from '../kit/hub-config.ts'

const tools = findBinaries(['systemd-socket-activate'])
const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts')

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
      '--serve-port=1',
      '--proxy-port=2',
      '--proxy-secure-port=0',
    ]
    const [command, args] = plainNode(main, 'start', ...flags)
    const systemd = spawn(
      tools.paths['systemd-socket-activate'],
      [
        `--listen=127.0.0.1:${opsPort}`,
        `--listen=127.0.0.1:${proxyPort}`,
        '--fdname=ops:proxy',
        command,
        ...args,
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    )
    let log = ''
    systemd.stderr.on('data', (text: Buffer) => (log += text.toString()))
    const over = once(systemd, 'exit')
    t.teardown(() => systemd.kill('SIGKILL'))
    while (!log.includes('Listening on')) await once(systemd.stderr, 'data')
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

const guide = readFileSync('docs/upgrade-without-a-gap.md', 'utf8')

/** The unit files of the guide, by name. */
const units = new Map(
  [...guide.matchAll(/`\/etc\/systemd\/system\/([\w.]+)`:\n\n```\n([^`]*)```/g)].map(
    ([, name = '', text = '']) => [name, text],
  ),
)

void t.test('the sockets of the guide are those of a hub that is told nothing else', async (t) => {
  const passed = [...(units.get('nodehub.socket') ?? '').matchAll(/^ListenStream=(.*):(\d+)$/gm)]
  const result = readConfig({
    argv: ['--server-addr=https://a'],
    env: {},
    hostname: 'n',
    readFile: () => '',
    passed: passed.map(([, address = '', port], i) => ({
      fd: 3 + i,
      name: 'nodehub.socket',
      at: { address, port: Number(port) },
    })),
  })
  t.match(result, { config: { sockets: { proxy: 3, ops: 4, 'proxy-secure': 5 } } })
})

const analyze = findBinaries(['systemd-analyze'])

void t.test(
  'systemd finds nothing wrong with the units of the guide',
  { skip: 'missing' in analyze && analyze.missing },
  async (t) => {
    if ('missing' in analyze) return
    const folder = mkdtempSync(join(tmpdir(), 'nodehub-units-'))
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    const paths = [...units].map(([name, text]) => {
      const path = join(folder, name)
      // A program that is there, as the units' own will be.
      writeFileSync(path, text.replace('/usr/local/bin/node', process.execPath))
      return path
    })
    t.equal(paths.length, 2)
    const { status, stderr } = spawnSync(analyze.paths['systemd-analyze'], ['verify', ...paths])
    t.strictSame([status, stderr.toString()], [0, ''])
  },
)
