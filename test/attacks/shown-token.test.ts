/**
 * Once: `npm start -- start --join-token=…` had the bootstrap token in the list of processes for as
 * long as the hub ran, by the launcher's arguments.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Condition } from '../kit/condition.ts'
import { freePort } from '../kit/free-port.ts'
import { rootFolder } from '../kit/hub.ts'
import { hubFlags } from '../kit/hub-config.ts'
import { signal } from '../kit/hub-process.ts'
import { joinToken, startJoinable } from '../kit/joinable.ts'

t.setTimeout(300_000)

const project = join(import.meta.dirname, '..', '..')
const [, secret = ''] = joinToken.split('.')

const ofProcess = (pid: number, file: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}

/** The process and all that come from it. */
function treeOf(pid: number): readonly number[] {
  const children = ofProcess(pid, `task/${pid}/children`).split(' ').filter(Boolean).map(Number)
  return [pid, ...children.flatMap(treeOf)]
}

/** Starts a hub by the launcher, on a bare environment and `env`. */
async function launched(t: Test, token: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const joinable = await startJoinable(t)
  const rootDir = rootFolder(t)
  const flags = [
    ...joinable.flags.filter((flag) => !flag.startsWith('--join-token')),
    `--server-addr=${joinable.cloud.url}`,
  ]
  const ports = ['proxy-port', 'proxy-secure-port', 'serve-port']
  const words = [
    ...token,
    ...(await Promise.all(ports.map(async (name) => `--${name}=${await freePort()}`))),
    ...hubFlags(rootDir, { upstreams: [], flags }),
  ]
  const child = spawn(process.execPath, [join('bin', 'run.js'), 'main', 'start', ...words], {
    cwd: project,
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const pid = child.pid ?? 0
  t.teardown(() => {
    for (const each of treeOf(pid)) signal(each, 'SIGKILL')
  })
  const condition = new Condition()
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => {
    said += chunk.toString()
    condition.changed()
  })
  const says = (what: RegExp) => condition.until(() => what.test(said))
  return { pid, says, said: () => said, closed: once(child, 'close') }
}

for (const token of [[`--join-token=${joinToken}`], ['--join_token', joinToken]]) {
  void t.test(
    `no process of a launched hub shows the token of ${token[0]?.slice(0, 12)}`,
    async (t) => {
      const { pid, says, said, closed } = await launched(t, token)
      const shown = () => treeOf(pid).map((each) => ofProcess(each, 'cmdline'))
      await says(/the hub has obtained a client certificate/)
      t.equal(shown().length > 1, true)
      t.notMatch(shown().join(), secret)
      for (const each of treeOf(pid)) signal(each, 'SIGTERM')
      await closed
      t.notMatch(said(), secret)
    },
  )
}

void t.test(
  'under npm, whose arguments stay, the launcher says how to give the token',
  async (t) => {
    const npm = { npm_lifecycle_event: 'start' }
    const shown = await launched(t, [`--join-token=${joinToken}`], npm)
    await shown.says(/npm shows the bootstrap token .*: give it in NODEHUB_JOIN_TOKEN/)
    await shown.says(/the hub has obtained a client certificate/)
    const hidden = await launched(t, [], { ...npm, NODEHUB_JOIN_TOKEN: joinToken })
    await hidden.says(/the hub has obtained a client certificate/)
    t.notMatch(hidden.said(), /npm shows/)
  },
)
