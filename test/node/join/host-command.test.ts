import { execFile } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { hostCommand } from '../../../src/node/join/host-command.ts'
import { findBinaries } from '../../kit/cluster/binaries.ts'

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
  const text = hostCommand(stateFolder, join(manifests, 'nodehub.yaml'))
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

void t.test('while no hub runs its last log lines are named', { skip }, async (t) => {
  const host = hostOf(t)
  const { code, out, err } = await host.run('version')
  t.strictSame([code, out], [2, ''])
  t.match(err, /no hub runs here, and its last lines are in \S+\/nodehub\/0\.log; docs\/install/)
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
