/**
 * SIGUSR1, on which Node opens its debugger to every program of the host. A process without keys
 * needs protection, too: a program that debugs it runs code as its user, which is root.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { manifests } from '../../src/cli/manifests.ts'
import { startCloud } from '../kit/hub.ts'
import { signal, startHubProcess } from '../kit/hub-process.ts'
import { until } from '../kit/until.ts'
import { portOf } from '../kit/wire/listening.ts'

t.setTimeout(300_000) // a process that starts takes its time on a busy machine

const project = join(import.meta.dirname, '..', '..')
const main = join(project, 'src', 'main.ts')

/** The number of SIGUSR1 in the masks of proc(5). */
const sigusr1 = 1n << 9n

const mask = (status: string, name: string): bigint =>
  BigInt(`0x${new RegExp(`^${name}:\\s*(\\w+)$`, 'm').exec(status)?.[1] ?? '0'}`)

/**
 * Resolves as soon as SIGUSR1 does not end the process any more, as it ends any program that has
 * not begun.
 */
async function survivesSignal(pid: number): Promise<void> {
  await until('SIGUSR1 to be blocked, ignored or caught', () => {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const masks = ['SigBlk', 'SigIgn', 'SigCgt'].map((name) => mask(status, name))
    return /^Name:\s*(?!env)/m.test(status) && masks.some((each) => (each & sigusr1) !== 0n)
  })
}

/** The port of Node's debugger, if the process listens there. */
function debuggerOf(pid: number): boolean {
  const sockets = new Set(
    readdirSync(`/proc/${pid}/fd`).map((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1]
      } catch {
        return undefined // closed since
      }
    }),
  )
  return readFileSync(`/proc/${pid}/net/tcp`, 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .some(
      ([, local = '', , state, , , , , , inode]) =>
        local.endsWith(':240D') && state === '0A' && sockets.has(inode),
    )
}

interface Started {
  readonly child: ChildProcess
  readonly pid: number
  readonly said: () => string
}

function started(t: Test, command: string, args: readonly string[]): Started {
  const { NODE_OPTIONS: _, ...env } = process.env
  const child = spawn(command, args, { cwd: project, env, stdio: ['ignore', 'pipe', 'pipe'] })
  t.teardown(() => child.kill('SIGKILL'))
  const said: string[] = []
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => said.push(chunk.toString()))
  return { child, pid: child.pid ?? 0, said: () => said.join('') }
}

/**
 * An API server that takes connections and says nothing, and a kubeconfig for it: `nodehub cluster`
 * waits.
 */
async function silent(
  t: Test,
): Promise<{ readonly kubeconfig: string; readonly asked: Promise<unknown> }> {
  const server = createServer((socket) => t.teardown(() => socket.destroy()))
  const asked = once(server, 'connection')
  const port = await portOf(t, server)
  const kubeconfig = join(t.testdir({}), 'kubeconfig')
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: `https://127.0.0.1:${port}` } }],
    users: [{ name: 'u', user: { token: 't' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  }
  writeFileSync(kubeconfig, JSON.stringify(config))
  return { kubeconfig, asked }
}

const clusterFlags = (kubeconfig: string): string[] => [
  'cluster',
  `--kubeconfig=${kubeconfig}`,
  '--webhook-port=0',
  '--ops-port=0',
]

/** As the image starts what it holds: the options of its entry point. */
function imageOptions(): string[] {
  const [, list = ''] = /^ENTRYPOINT (\[.*\])$/m.exec(readFileSync('Dockerfile', 'utf8')) ?? []
  return (JSON.parse(list) as string[]).slice(1, -1)
}

void t.test('a process of the image never opens the debugger on SIGUSR1', async (t) => {
  const { kubeconfig, asked } = await silent(t)
  const args = [...imageOptions(), main, ...clusterFlags(kubeconfig)]
  const { pid, child, said } = started(t, process.execPath, args)
  await survivesSignal(pid)
  signal(pid, 'SIGUSR1')
  await asked
  signal(pid, 'SIGUSR1')
  // Output after the signal shows that the signal was handled.
  signal(pid, 'SIGTERM')
  await once(child, 'close')
  t.notMatch(said(), /debugger/i)
  t.equal(child.exitCode, 0)
})

void t.test('a process without the option opens no debugger once it runs', async (t) => {
  const { kubeconfig, asked } = await silent(t)
  const { pid, child, said } = started(t, process.execPath, [main, ...clusterFlags(kubeconfig)])
  await asked
  signal(pid, 'SIGUSR1')
  t.notOk(debuggerOf(pid))
  signal(pid, 'SIGTERM')
  await once(child, 'close')
  t.notMatch(said(), /debugger/i)
  t.equal(child.exitCode, 0)
})

void t.test('npm start passes the option, and opens no debugger itself', async (t) => {
  const { kubeconfig, asked } = await silent(t)
  const args = [join('bin', 'run.js'), 'main', ...clusterFlags(kubeconfig)]
  const { pid, child, said } = started(t, process.execPath, args)
  await asked
  const [inner = 0] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .split(' ')
    .map(Number)
  t.teardown(() => signal(inner, 'SIGKILL'))
  t.ok(readFileSync(`/proc/${inner}/cmdline`, 'utf8').split('\0').includes('--disable-sigusr1'))
  for (const each of [pid, inner]) signal(each, 'SIGUSR1')
  const masks = [pid, inner].map((each) => {
    const status = readFileSync(`/proc/${each}/status`, 'utf8')
    const [ignored, caught] = ['SigIgn', 'SigCgt'].map((name) => mask(status, name) & sigusr1)
    return `${each}: ignored ${ignored}, caught ${caught}, debugger ${debuggerOf(each)}`
  })
  signal(inner, 'SIGTERM')
  await once(child, 'close')
  t.equal(child.exitCode, 0)
  t.notMatch(said(), /debugger/i, masks.join('; '))
})

void t.test(
  'a core dump of the hub has no memory in it, and Node reports nothing by itself',
  async (t) => {
    const hub = await startHubProcess(t, { upstreams: [await startCloud(t)] })
    t.equal(readFileSync(`/proc/${hub.pid}/coredump_filter`, 'utf8').trim(), '00000000')
  },
)

void t.test(
  'the unit, and every drop-in of the documents, starts the hub with the option and without core dumps',
  async (t) => {
    const printed: string[] = []
    const terminal = { out: (text: string) => printed.push(text), err: () => undefined }
    await manifests.run(
      ['--part=systemd', '--unit=nodehub.service', '--server-addr=https://a'],
      terminal,
    )
    t.match(printed.join(''), /^ExecStart=\S*node --disable-sigusr1 /m)
    t.match(printed.join(''), /^LimitCORE=0$/m)
    for (const name of readdirSync('docs').filter((name) => name.endsWith('.md'))) {
      const units = readFileSync(join('docs', name), 'utf8').matchAll(/```ini\n(.*?)```/gs)
      for (const [, unit = ''] of units) {
        if (!/^ExecStart=.*(?:main\.js|nodehub) start/m.test(unit)) continue
        t.match(unit, /^(?:ExecStart=\S*node .*|Environment=NODE_OPTIONS=)--disable-sigusr1/m, name)
        // A drop-in, which takes the place of the unit's command, and of nothing else.
        if (!/^ExecStart=$/m.test(unit)) t.match(unit, /^LimitCORE=0$/m, name)
      }
    }
  },
)
