/** Packages, each built, installed into the root of a node, run there and removed. */
import { execFile, spawnSync } from 'node:child_process'
import {
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { configSchemaFile } from '../../packaging/config-schema.ts'
import { buildDeb } from '../../packaging/deb.ts'
import { manPageFile } from '../../packaging/man-page.ts'
import { stagePayload, type Payload } from '../../packaging/payload.ts'
import { buildRpm } from '../../packaging/rpm.ts'
import { buildTarball, tarballPlugin } from '../../packaging/tarball.ts'
import { ownVersion } from '../../src/base/own-version.ts'
import { whyNotRunnable } from '../../src/node/join/runnable.ts'
import { buildProject, makeRootfs } from '../kit/built-project.ts'
import { findBinaries } from '../kit/cluster/binaries.ts'
import { rootFolder } from '../kit/root-folder.ts'
import { documentedLines } from '../documented-commands.ts'
import { laterLog } from '../kit/log-on-disk.ts'

t.setTimeout(600_000)

const exec = promisify(execFile)
const skipWithout = (...names: string[]): string | false => {
  const found = findBinaries(['ldd', 'chroot', ...names])
  if ('missing' in found) return found.missing
  return process.getuid?.() === 0 ? false : 'only root installs packages'
}

const work = rootFolder(t)
const project = await buildProject(join(work, 'project'))
const payload: Payload = stagePayload(join(work, 'payload'), { project, node: process.execPath })
const { version } = payload

let count = 0
const buildIn = () => {
  const folder = join(work, `build-${++count}`)
  mkdirSync(folder)
  return { out: folder, work: folder, compression: 'none' } as const
}

/** The root of a node with a shell, and the libraries of Node. */
async function nodeRoot(t: Test): Promise<string> {
  const rootfs = join(rootFolder(t), 'root')
  await makeRootfs(rootfs, 'ldd', {
    '/bin/sh': '/bin/sh',
    '/usr/bin/readlink': '/usr/bin/readlink',
    '/usr/local/bin/node': process.execPath,
  })
  // Only its libraries are needed.
  await exec('rm', [join(rootfs, 'usr/local/bin/node')])
  return rootfs
}

/** What a node has besides that of before, without the packager's own folder. */
const added = (root: string, before: readonly string[]): readonly string[] =>
  filesIn(root).filter((path) => !before.includes(path))

const filesIn = (root: string): readonly string[] =>
  readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter(
      (path) =>
        !path.startsWith('var/lib/dpkg') &&
        !path.startsWith('var/lib/rpm') &&
        !path.startsWith('usr/lib/sysimage'),
    )
    .filter((path) => statSync(join(root, path)).isFile())

/** Runs a program of the node. */
const runIn = (root: string, ...argv: readonly string[]) =>
  spawnSync('env', ['-i', `PATH=${process.env['PATH']}`, 'chroot', root, ...argv], {
    encoding: 'utf8',
  })

async function runsIn(t: Test, root: string): Promise<void> {
  const { stdout } = runIn(root, '/usr/bin/nodehub', 'version')
  t.match(stdout, `nodehub ${ownVersion()}\nnode ${process.versions.node}\n`)
  t.match(runIn(root, '/usr/bin/kubectl-nodehub', 'help').stdout, 'Usage: kubectl nodehub ')
  const unit = readFileSync(join(root, 'usr/lib/systemd/system/nodehub.service'), 'utf8')
  t.match(unit, 'ExecStart=/opt/nodehub/bin/node ')
  t.match(unit, ' start --config=/etc/nodehub/config.yaml\n')
  const completion = readFileSync(
    join(root, 'usr/share/bash-completion/completions/nodehub'),
    'utf8',
  )
  t.match(completion, '\ncomplete -F _nodehub nodehub\n')
  for (const path of ['zsh/vendor-completions/_nodehub', 'fish/vendor_completions.d/nodehub.fish'])
    t.ok(existsSync(join(root, 'usr/share', path)), path)
  t.match(readFileSync(join(root, manPageFile), 'utf8'), '.SS cluster check\n')
  t.match(readFileSync(join(root, configSchemaFile), 'utf8'), '"server-addr"')
  for (const page of ['CHANGELOG.md', 'docs/design/parity.md', 'docs/status-page/offline.webp'])
    t.ok(existsSync(join(root, 'opt/nodehub', page)), page)
  t.equal(await whyNotRunnable(root, { node: '/opt/nodehub/bin/node' }), undefined)
  t.equal(statSync(join(root, 'etc/nodehub/config.yaml')).mode & 0o777, 0o600)
}

/** Fails where the page does not lead from the packaged settings to those that start a hub. */
function needsServers(t: Test, root: string): void {
  const check = () =>
    runIn(root, '/usr/bin/nodehub', 'check-config', '--config=/etc/nodehub/config.yaml').stderr
  t.match(check(), '--server-addr')
  const page = documentedLines().filter(({ page }) => page === 'docs/install.md')
  const line = page.find(({ line }) => line.startsWith("echo 'server-addr"))?.line ?? ''
  t.equal(runIn(root, '/bin/sh', '-c', line).status, 0, line)
  t.notMatch(check(), '--server-addr')
}

/** Fails where a removal does not end before it removes what the kubelet of the node needs. */
async function staysInUse(
  t: Test,
  root: string,
  removal: readonly string[],
  left = 'opt/nodehub/bin/node',
): Promise<void> {
  const [command = '', ...args] = removal
  for (const [folder, wayBack] of [
    ['joined', 'nodehub leave --restart'],
    ['adopted', 'nodehub adopt --rollback'],
  ] as const) {
    const record = join(root, 'var/lib/nodehub', folder, 'record.json')
    mkdirSync(dirname(record), { recursive: true })
    writeFileSync(record, '{}')
    t.match(spawnSync(command, args, { encoding: 'utf8' }).stderr, wayBack)
    t.ok(existsSync(join(root, left)))
    await exec('rm', [record])
  }
}

void t.test(
  'the Debian package runs where Node is not, stays while the kubelet needs it, and purged leaves no file',
  { skip: skipWithout('dpkg', 'dpkg-deb') },
  async (t) => {
    const root = await nodeRoot(t)
    const file = buildDeb(payload, buildIn())
    for (const name of ['status', 'available', 'info/format'])
      mkdirSync(dirname(join(root, 'var/lib/dpkg', name)), { recursive: true })
    writeFileSync(join(root, 'var/lib/dpkg/status'), '')
    mkdirSync(join(root, 'var/lib/dpkg/updates'))
    const before = filesIn(root)
    const dpkg = [`--root=${root}`, '--force-script-chrootless', '--force-depends']
    await exec('dpkg', [...dpkg, '--install', file])
    await runsIn(t, root)
    await keepsLaterHub(t, root, ['dpkg', ...dpkg, '--install', file])
    await findsCacheOfHub(t, root)
    await staysInUse(t, root, ['dpkg', ...dpkg, '--remove', 'nodehub'])
    writeFileSync(join(root, 'var/lib/nodehub/state'), '')
    await exec('dpkg', [...dpkg, '--remove', 'nodehub'])
    await staysInUse(t, root, ['dpkg', ...dpkg, '--purge', 'nodehub'], 'var/lib/nodehub/state')
    await exec('dpkg', [...dpkg, '--purge', 'nodehub'])
    t.strictSame(added(root, before), [])
  },
)

void t.test(
  'the RPM package runs where Node is not, stays while the kubelet needs it, and removed leaves no file',
  { skip: skipWithout('rpm', 'rpmbuild') },
  async (t) => {
    const root = await nodeRoot(t)
    const file = buildRpm(payload, buildIn())
    const before = filesIn(root)
    const rpm = [`--root=${root}`, '--dbpath=/var/lib/rpm', '--nodeps', '--ignoresize']
    await exec('rpm', [...rpm, '--install', file])
    await runsIn(t, root)
    await keepsLaterHub(t, root, ['rpm', ...rpm, '--upgrade', '--replacepkgs', file])
    await staysInUse(t, root, ['rpm', ...rpm, '--erase', 'nodehub'])
    const { stderr } = await exec('rpm', [...rpm, '--erase', 'nodehub'])
    t.match(stderr, 'stay in /var/lib/nodehub, the settings in /etc/nodehub')
    t.strictSame(added(root, before), [])
  },
)

void t.test(
  'the tarball needs no packager, an upgrade keeps the settings, the kubelet its hub, and purged leaves no file',
  { skip: skipWithout('tar') },
  async (t) => {
    const root = await nodeRoot(t)
    const before = filesIn(root)
    const folder = rootFolder(t)
    await exec('tar', ['-xf', buildTarball(payload, buildIn()), '-C', folder])
    const [setup = ''] = globSync(join(folder, '*/setup.sh'))
    const linked = join(folder, 'kubectl-nodehub')
    symlinkSync(join(dirname(setup), tarballPlugin), linked)
    t.match(
      spawnSync(linked, ['fleet', '--help'], { encoding: 'utf8' }).stdout,
      'Usage: kubectl nodehub fleet ',
      'krew installs nothing',
    )
    await exec(setup, ['install', root])
    await runsIn(t, root)
    needsServers(t, root)
    const settings = join(root, 'etc/nodehub/config.yaml')
    writeFileSync(settings, 'server-addr: https://a:6443\n')
    writeFileSync(join(root, 'opt/nodehub/of-the-version-before'), '')
    await exec(setup, ['install', root])
    t.equal(readFileSync(settings, 'utf8'), 'server-addr: https://a:6443\n')
    t.notOk(existsSync(join(root, 'opt/nodehub/of-the-version-before')))
    const installed = join(root, 'opt/nodehub/setup.sh')
    await keepsLaterHub(t, root, [setup, 'install', root])
    saysBeforehand(t, root, dirname(setup))
    await staysInUse(t, root, [installed, 'purge', root])
    await exec(installed, ['purge', root])
    t.strictSame(added(root, before), [])
  },
)

/** Fails where `install` brings a hub to a node that would refuse the cache there. */
async function keepsLaterHub(t: Test, root: string, install: readonly string[]): Promise<void> {
  const [command = '', ...args] = install
  const mark = join(root, 'opt/nodehub/of-the-later-release')
  writeFileSync(mark, '')
  const cache = join(root, 'var/lib/nodehub/cache')
  laterCache(cache)
  const { stderr } = spawnSync(command, args, { encoding: 'utf8' })
  t.match(stderr, /cache\/0000000001\.log has the format 1000, .* nothing is changed/)
  t.match(stderr, 'systemctl stop nodehub.socket nodehub-ipv6.socket nodehub.service')
  t.ok(existsSync(mark), 'the later release stays')
  await exec('rm', ['-r', mark, cache])
}

/** Fails where a running hub keeps its cache elsewhere, and the script does not find it. */
async function findsCacheOfHub(t: Test, root: string): Promise<void> {
  laterCache(join(root, 'data'))
  for (const folder of ['proc/4711/fd', 'run/systemd/system'])
    mkdirSync(join(root, folder), { recursive: true })
  symlinkSync('/data/lock.db', join(root, 'proc/4711/fd/20'))
  const systemctl = join(root, 'usr/bin/systemctl')
  writeFileSync(systemctl, '#!/bin/sh\necho 4711\n', { mode: 0o755 })
  const { status, stderr } = runIn(root, '/var/lib/dpkg/info/nodehub.preinst', 'upgrade')
  t.match(stderr, '/data/0000000001.log has the format 1000')
  t.equal(status, 1)
  await exec('rm', ['-r', systemctl, ...['data', 'proc', 'run'].map((name) => join(root, name))])
}

/** Fails where an unpacked release, as the page has it, does not say that it could not start. */
function saysBeforehand(t: Test, root: string, unpacked: string): void {
  const rootDir = join(root, 'var/lib/nodehub')
  laterCache(join(rootDir, 'cache'))
  const config = join(rootDir, 'config.yaml')
  writeFileSync(
    config,
    `server-addr: https://a:6443\nbootstrap-mode: anonymous\nroot-dir: ${rootDir}\n`,
  )
  const shown = documentedLines().find(({ line }) => line.startsWith('/root/nodehub-'))?.line ?? ''
  const line = shown
    .replaceAll(/\/root\/nodehub-[^/]*/g, unpacked)
    .replace('/etc/nodehub/config.yaml', config)
  t.match(spawnSync('sh', ['-c', line], { encoding: 'utf8' }), {
    status: 2,
    stderr: /has the format 1000, .* start refuses it/,
  })
}

function laterCache(folder: string): void {
  mkdirSync(folder, { recursive: true })
  laterLog(folder)
}

void t.test('a package is for the processor of the Node in it, or is not made', async (t) => {
  const head = Buffer.alloc(64)
  head.write('\x7fELF', 'latin1')
  head.writeUInt16LE(183, 18)
  const [arm, none] = [join(work, 'arm'), join(work, 'none')]
  writeFileSync(arm, head)
  writeFileSync(none, '#!/bin/sh\n')
  const staged = (node: string) => stagePayload(rootFolder(t), { project, node })
  t.strictSame(staged(arm).architecture, { debian: 'arm64', rpm: 'aarch64' })
  t.throws(() => staged(none), /no program for Linux on amd64 or arm64/)
})

interface Bill {
  readonly components: readonly { 'bom-ref': string; name: string; version: string }[]
}

void t.test('the bill of materials lists exactly the packages that are installed', async (t) => {
  const program = join(payload.root, 'opt/nodehub')
  const { components } = JSON.parse(readFileSync(join(program, 'sbom.cdx.json'), 'utf8')) as Bill
  const installed = globSync(
    ['node_modules/{*,@*/*}/package.json', 'node_modules/**/node_modules/{*,@*/*}/package.json'],
    { cwd: program },
  ).map(dirname)
  t.ok(components.length > 5)
  t.strictSame(components.map((each) => each['bom-ref']).toSorted(), installed.toSorted())
})

void t.test('npm pack has the files of a global install, which refuses an old Node', async (t) => {
  const pack = ['pack', '--json', '--ignore-scripts', '--dry-run', '--offline']
  const { stdout } = await exec('npm', pack, { cwd: project })
  const packed = JSON.stringify(JSON.parse(stdout))
  const plugin = join(work, 'kubectl-nodehub')
  symlinkSync(join(project, 'bin/nodehub.js'), plugin)
  t.match(
    spawnSync(process.execPath, [plugin, 'help'], { encoding: 'utf8' }).stdout,
    'Usage: kubectl nodehub ',
  )
  for (const path of ['bin/nodehub.js', 'dist/src/main.js', 'dist/src/cli/start.js'])
    t.match(packed, `"path":"${path}"`)
  const run = () =>
    spawnSync(process.execPath, [join(project, 'bin/nodehub.js'), 'version'], {
      encoding: 'utf8',
      env: {},
    })
  t.match(run(), { status: 0, stdout: `nodehub ${version}` })
  const manifest = join(project, 'package.json')
  const text = readFileSync(manifest, 'utf8')
  writeFileSync(manifest, text.replace('>=26', '>=99'))
  t.match(run(), {
    status: 1,
    stdout: '',
    stderr: `nodehub needs Node 99 or later, and this is Node ${process.versions.node}.\n`,
  })
  writeFileSync(manifest, text)
  renameSync(join(project, 'dist'), join(project, 'dist-aside'))
  t.match(run(), { status: 1, stdout: '', stderr: /^nodehub is not built here: use npm start / })
  renameSync(join(project, 'dist-aside'), join(project, 'dist'))
})
