/**
 * The Debian package on a Debian that has nothing else: installed with what it depends on, checked
 * by that Debian's systemd, started by its sockets, removed. It needs no control plane, but minutes
 * and a mirror of Debian.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { buildDeb } from '../../packaging/deb.ts'
import { stagePayload } from '../../packaging/payload.ts'
import { buildProject } from '../kit/built-project.ts'
import { Client } from '../kit/client.ts'
import { nodeName, podsOfNode, startCloud } from '../kit/cloud.ts'
import { DebianRoot, noDebianRoot } from '../kit/debian-root.ts'
import { freePort } from '../kit/free-port.ts'
import { rootFolder } from '../kit/root-folder.ts'
import { until } from '../kit/until.ts'

t.setTimeout(480_000)

/** Resolves to the path of a package made now. */
async function debianPackage(t: Test): Promise<string> {
  const work = rootFolder(t)
  const project = await buildProject(join(work, 'project'))
  const payload = stagePayload(join(work, 'payload'), { project, node: process.execPath })
  const out = join(work, 'out')
  mkdirSync(out)
  return buildDeb(payload, { out, work: out, compression: 'none' })
}

/** What a packager keeps of all packages, and so may differ. */
const ofPackager = /^(?:proc|var\/(?:lib\/(?:dpkg|apt|systemd)|cache|log))\/|^etc\/ld\.so\.cache$/

/** Those of the root itself: what a link out of it leads to, as /run/shm, is this machine's. */
const filesIn = (root: string): readonly string[] =>
  execFileSync('find', [root, '-xdev', '-type', 'f', '-printf', '%P\\n'], { encoding: 'utf8' })
    .split('\n')
    .filter((path) => path !== '' && !ofPackager.test(path))
    .toSorted()

const folder = join(rootFolder(t), 'root')
const debian = noDebianRoot() === false ? await DebianRoot.make(folder, ['systemd']) : undefined
const skip = noDebianRoot() || (debian ? false : 'no mirror of Debian can be reached')

void t.test(
  'on a clean Debian the package is installed, serves on its sockets, and purged leaves no file',
  { skip },
  async (t) => {
    if (!debian) return
    const file = await debianPackage(t)
    t.notOk(existsSync(join(debian.path, 'usr/bin/node')))
    const before = filesIn(debian.path)

    copyFileSync(file, join(debian.path, 'nodehub.deb'))
    await debian.run('apt-get', 'install', '-y', '--no-install-recommends', '/nodehub.deb')
    t.match(await debian.run('dpkg-query', '-W', 'libatomic1'), 'libatomic1', 'a dependency')
    t.match(await debian.run('nodehub', 'version'), /^nodehub \d/)

    const units = ['nodehub.socket', 'nodehub-ipv6.socket', 'nodehub.service']
    const paths = units.map((unit) => `/usr/lib/systemd/system/${unit}`)
    t.equal(await debian.run('systemd-analyze', 'verify', ...paths), '', 'systemd verifies them')
    await debian.run('systemctl', 'enable', ...units)
    t.ok(statSync(join(debian.path, 'etc/systemd/system/sockets.target.wants')).isDirectory())
    await debian.run('systemctl', 'disable', ...units)

    await serves(t, debian)

    await debian.run('apt-get', 'remove', '-y', 'nodehub')
    t.notOk(existsSync(join(debian.path, 'opt/nodehub')))
    t.ok(existsSync(join(debian.path, 'var/lib/nodehub/cache')), 'the state stays')
    await debian.run('apt-get', 'purge', '-y', 'nodehub', 'libatomic1')
    // The mark by which systemctl tells a manager to load units anew; gone with the next boot.
    const expected = new Set([...before, 'run/systemd/systemd-units-load'])
    const left = filesIn(debian.path).filter((path) => !expected.has(path))
    t.strictSame(left, ['nodehub.deb'])
  },
)

/** The command of the packaged unit, on sockets that systemd passes as it would for the unit. */
async function serves(t: Test, debian: DebianRoot): Promise<void> {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  const [proxyPort, opsPort, securePort] = [await freePort(), await freePort(), await freePort()]
  writeFileSync(
    join(debian.path, 'etc/nodehub/config.yaml'),
    [
      `server-addr: ${cloud.url}`,
      `node-name: ${nodeName}`,
      'bootstrap-mode: anonymous',
      // The interface would be this machine's.
      'enable-dummy-if: false',
      `proxy-port: ${proxyPort}`,
      `proxy-secure-port: ${securePort}`,
      `serve-port: ${opsPort}`,
    ].join('\n'),
  )
  t.match(
    await debian.run('nodehub', 'check-config', '--config=/etc/nodehub/config.yaml'),
    'server-addr',
  )
  const unit = readFileSync(join(debian.path, 'usr/lib/systemd/system/nodehub.service'), 'utf8')
  const [, command = ''] = /^ExecStart=(.*)$/m.exec(unit) ?? []
  const hub = debian.spawn(
    'systemd-socket-activate',
    `--listen=127.0.0.1:${proxyPort}`,
    `--listen=127.0.0.1:${opsPort}`,
    `--listen=127.0.0.1:${securePort}`,
    ...command.split(' '),
  )
  t.teardown(() => hub.kill('SIGKILL'))
  let log = ''
  hub.stderr?.on('data', (text: Buffer) => (log += text.toString()))
  const ended = once(hub, 'exit')
  await until('systemd to listen', () => log.includes('Listening on'), { describe: () => log })
  const kubelet = new Client({ url: `http://127.0.0.1:${proxyPort}`, component: 'kubelet' })
  t.strictSame((await kubelet.list(podsOfNode)).names, ['default/a'])
  const ops = new Client({ url: `http://127.0.0.1:${opsPort}`, component: 'prober' })
  t.equal((await ops.get('/readyz')).status, 200)
  hub.kill('SIGTERM')
  t.strictSame(await ended, [0, null], log)
}
