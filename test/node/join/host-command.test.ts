import { execFile, spawn } from 'node:child_process'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import t, { type Test } from 'tap'
import { hostCommand } from '../../../src/node/join/host-command.ts'
import { findBinaries } from '../../kit/cluster/binaries.ts'
import { until } from '../../kit/until.ts'

t.setTimeout(120_000)

const found = findBinaries(['nsenter'])
const skip =
  'missing' in found
    ? found.missing
    : process.platform === 'linux' && process.getuid?.() === 0
      ? false
      : 'only root on Linux enters a container'

interface Host {
  readonly folder: string
  readonly stateFolder: string
  readonly manifests: string
  run(...words: readonly string[]): Promise<{ code: number; out: string; err: string }>
}

/** The command of a host whose containers are this process, with the sources as their image. */
function hostOf(t: Test): Host {
  const folder = t.testdir({ manifests: {}, operator: {}, logs: {} })
  const stateFolder = join(folder, "an operator's state")
  mkdirSync(join(stateFolder, 'cache'), { recursive: true, mode: 0o700 })
  mkdirSync(join(folder, 'logs/kube-system_nodehub-a_1/nodehub'), { recursive: true })
  writeFileSync(join(folder, 'logs/kube-system_nodehub-a_1/nodehub/0.log'), 'the last words\n')
  const manifests = join(folder, 'manifests')
  const text = hostCommand({
    rootDir: stateFolder,
    staticPod: join(manifests, 'nodehub.yaml'),
    image: 'hub:1',
  })
    .replaceAll('/usr/local/bin/node', process.execPath)
    .replaceAll('/app/dist/src/main.js', join(process.cwd(), 'src/main.ts'))
    .replace('/var/log/pods', join(folder, 'logs'))
  const command = join(folder, 'nodehub')
  writeFileSync(command, text, { mode: 0o755 })
  return {
    folder,
    stateFolder,
    manifests,
    run: (...words) => {
      const { promise, resolve } = Promise.withResolvers<{
        code: number
        out: string
        err: string
      }>()
      const cwd = join(folder, 'operator')
      execFile(command, words, { cwd, env: { PATH: process.env['PATH'] } }, (error, out, err) =>
        resolve({ code: error === null ? 0 : Number(error.code ?? -1), out, err }),
      )
      return promise
    },
  }
}

void t.test(
  'the command runs in the hub’s container with the host’s files',
  { skip },
  async (t) => {
    const host = hostOf(t)
    const handle = openSync(join(host.stateFolder, 'cache/lock.db'), 'a')
    t.teardown(() => closeSync(handle))
    t.match(await host.run('version'), { code: 0, out: /^nodehub \d/, err: '' })
    t.equal((await host.run('inspect', 'nothing')).code, 2, "the code is the command's")

    const state = `--root-dir=${host.stateFolder}`
    const bundle = (file: string) => host.run('inspect', 'bundle', `--file=${file}`, state)
    t.equal((await bundle('here.tar.gz')).err, '')
    t.equal((await bundle(join(host.folder, 'there.tar.gz'))).err, '')
    t.ok(existsSync(join(host.folder, 'operator/here.tar.gz')))
    t.ok(existsSync(join(host.folder, 'there.tar.gz')))
    t.strictSame(readdirSync(host.manifests), [])
  },
)

interface CommandPod {
  readonly metadata: { readonly name: string }
  readonly spec: { readonly containers: readonly { image: string; args: readonly string[] }[] }
}

const podOf = (manifest: string): CommandPod =>
  JSON.parse(readFileSync(manifest, 'utf8')) as CommandPod

/** Those of running commands, once there are so many. */
const manifestsOfCommands = (host: Host, count: number): Promise<string[]> =>
  until('the manifests', () => {
    const names = readdirSync(host.manifests).filter((each) =>
      /^nodehub-command-(?!4194305)\d+\.json$/.test(each),
    )
    return Promise.resolve(
      names.length === count && names.map((name) => join(host.manifests, name)),
    )
  })

void t.test('while no hub runs the kubelet starts a container for it', { skip }, async (t) => {
  const host = hostOf(t)
  writeFileSync(
    join(host.manifests, 'nodehub.yaml'),
    'spec:\n  containers:\n    - image: "hub:2"\n',
  )
  // As a command leaves it that was killed: no process has this number.
  writeFileSync(join(host.manifests, 'nodehub-command-4194305.json'), '{}')
  const running = host.run('version')
  const [manifest = ''] = await manifestsOfCommands(host, 1)
  const { metadata, spec } = podOf(manifest)
  t.equal(`${metadata.name}.json`, basename(manifest))
  const file = join(host.stateFolder, `${metadata.name}.lock`)
  t.match(spec.containers, [{ image: 'hub:2', args: ['install', '--hold', `--lock=${file}`] }])
  const held = openSync(file, 'a')
  const { code, out, err } = await running
  closeSync(held)
  t.equal(code, 0, err)
  t.match(out, /^nodehub \d/)
  t.match(err, /no hub runs here, and its last lines are in \S+\/nodehub\/0\.log/)
  t.strictSame(readdirSync(host.manifests), ['nodehub.yaml'])
  t.notOk(existsSync(file))
})

void t.test('commands without a hub run independently', { skip }, async (t) => {
  const host = hostOf(t)
  // As a command has it open that runs in a container of its own.
  const handle = openSync(join(host.stateFolder, 'cache/lock.db'), 'a')
  const command = spawn('sleep', ['100'], {
    stdio: [handle, 'ignore', 'ignore'],
    env: { ...process.env, NODEHUB_HOST_ROOT: '/proc/self/fd/3' },
  })
  closeSync(handle)
  t.teardown(() => command.kill())
  const runs = [host.run('version'), host.run('version')]
  const manifests = await manifestsOfCommands(host, 2)
  const locks = manifests.map((each) => join(host.stateFolder, `${basename(each, '.json')}.lock`))
  t.strictSame(
    manifests.map((each) => podOf(each).spec.containers[0]?.args.at(-1)),
    locks.map((each) => `--lock=${each}`),
  )
  const [first = '', second = ''] = locks
  const heldFirst = openSync(first, 'a')
  t.match(await Promise.race(runs), { code: 0, out: /^nodehub \d/ })
  closeSync(heldFirst)
  t.strictSame(
    [...manifests, ...locks].map((each) => existsSync(each)),
    [false, true, false, false],
  )
  const heldSecond = openSync(second, 'a')
  t.match(await Promise.all(runs), [{ code: 0 }, { code: 0 }])
  closeSync(heldSecond)
  t.strictSame(readdirSync(host.manifests), [])
})

void t.test(
  'a hub whose cache is elsewhere is found, however its manifest writes that',
  { skip },
  async (t) => {
    const host = hostOf(t)
    const elsewhere = join(host.folder, 'a disk')
    mkdirSync(elsewhere)
    const held = openSync(join(elsewhere, 'lock.db'), 'a')
    t.teardown(() => closeSync(held))
    const flag = `--disk-cache-path=${elsewhere}`
    for (const written of [flag, JSON.stringify(flag), `'${flag}'`, `${JSON.stringify(flag)},`]) {
      writeFileSync(join(host.manifests, 'nodehub.yaml'), `      args:\n        - ${written}\n`)
      t.match(await host.run('version'), { code: 0, err: '' }, written)
    }
  },
)

void t.test('commands that change the host are refused, with a page', { skip }, async (t) => {
  const host = hostOf(t)
  for (const word of ['join', 'leave', 'adopt', 'install', 'start'])
    t.match(await host.run(word), { code: 2, out: '', err: 'docs/install.md' }, word)
  t.strictSame(readdirSync(host.manifests), [])
})
