// npm run bench-start: how soon a hub answers after its start without an API server, and what it
// holds in memory. README.md says more.
import { spawnSync } from 'node:child_process'
import { type AddressInfo, createServer } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiClient } from '../test/kit/cluster/api-client.ts'
import { Daemon } from '../test/kit/cluster/daemon.ts'
import { openWorkspace, type Workspace } from '../test/kit/cluster/workspace.ts'
import { freePort } from '../test/kit/free-port.ts'
import { ensureBuilt } from './build.ts'
import { Lifetime } from './lifetime.ts'
import { fanOut } from './load/fan-out-load.ts'
import type { Target } from './load/target.ts'
import { machine } from './machine.ts'
import { usageOf } from './measure/process-usage.ts'
import { spread } from './measure/statistics.ts'
import { json, recorded } from './scenarios/callers.ts'
import { sandboxUpstream } from './upstream/sandbox.ts'
import { manyCount, manyPath, seedMany, servicesPath } from './upstream/services.ts'
import { nodeName, type Upstream } from './upstream/upstream.ts'

const say = (line: string): void => console.log(line)
const runs = 11
const main = join(import.meta.dirname, '..', 'dist', 'src', 'main.js')
const list = `${manyPath}&resourceVersion=0`

/** A hub of its own over state that outlives it, listing `manyCount` services. */
class Hub {
  readonly #daemon: Daemon
  readonly #client: ApiClient
  readonly target: Target

  static async over(workspace: Workspace, upstream: Upstream, server: string): Promise<Hub> {
    const [proxy, secure, serve] = [await freePort(), await freePort(), await freePort()]
    const daemon = new Daemon(workspace, 'hub', {
      command: process.execPath,
      args: [
        '--max-semi-space-size=4',
        main,
        'start',
        `--server-addr=${server}`,
        `--kubeconfig=${upstream.kubeconfig}`,
        `--node-name=${nodeName}`,
        `--proxy-port=${proxy}`,
        `--proxy-secure-port=${secure}`,
        `--serve-port=${serve}`,
        `--root-dir=${workspace.file('hub')}`,
        '--anonymous-loopback=node',
        '--enable-dummy-if=false',
      ],
      env: { MALLOC_ARENA_MAX: '1' },
      // Asked for the first answer by who measures.
      ready: () => Promise.resolve(true),
    })
    return new Hub(daemon, `http://127.0.0.1:${proxy}`)
  }

  private constructor(daemon: Daemon, url: string) {
    this.#daemon = daemon
    this.#client = new ApiClient(url)
    this.target = { url }
  }

  /** Milliseconds from the start of the process to the whole list. */
  async start(): Promise<number> {
    const began = performance.now()
    await this.#daemon.start()
    for (;;) {
      const answer = await this.list().catch(() => undefined)
      if (answer === manyCount) return performance.now() - began
      if (performance.now() - began > 30_000) throw new Error('no answer in 30 s')
      await sleep(2)
    }
  }

  async list(): Promise<number> {
    const { status, json } = await this.#client.get(list)
    return status === 200 ? (json().items?.length ?? 0) : 0
  }

  get residentMegabytes(): number {
    return usageOf(this.#daemon.id).residentBytes / 1e6
  }

  /** Orderly, or as a power cut does. */
  async end(how: 'stop' | 'kill'): Promise<void> {
    await this.#daemon[how]()
  }
}

/** Milliseconds of `node -e 0`, with which a start is compared. */
function bareNode(): number {
  const began = performance.now()
  spawnSync(process.execPath, ['-e', '0'])
  return performance.now() - began
}

async function measure(lifetime: Lifetime): Promise<void> {
  ensureBuilt()
  const workspace = openWorkspace(lifetime)
  const upstream = await sandboxUpstream(lifetime)
  await seedMany(upstream.admin)
  say(`${machine()}; ${manyCount} services; a built hub with the image's flags`)

  const online = await Hub.over(workspace, upstream, upstream.node.url)
  say(`first start, online, to the whole list: ${(await online.start()).toFixed(0)} ms`)
  await settled()
  say(`resident with ${manyCount} objects recorded: ${online.residentMegabytes.toFixed(0)} MB`)
  await fanOut({
    target: online.target,
    path: servicesPath,
    count: 100,
    headers: { ...recorded, Accept: json },
  })
  await settled()
  say(`resident with 100 watches beside: ${online.residentMegabytes.toFixed(0)} MB`)
  await online.end('stop')

  using silent = await silence()
  const gone = `https://127.0.0.1:${await freePort()}`
  for (const [what, server] of [
    ['gone', gone],
    ['hanging', `https://127.0.0.1:${silent.port}`],
  ] as const) {
    for (const how of ['stop', 'kill'] as const) {
      const taken: number[] = []
      const bare: number[] = []
      let idle = 0
      const hub = await Hub.over(workspace, upstream, server)
      for (let run = 0; run < runs; run += 1) {
        bare.push(bareNode())
        taken.push(await hub.start())
        if (run === 0) {
          await settled()
          idle = hub.residentMegabytes
        }
        await hub.end(how)
      }
      const { median, min, max } = spread(taken) ?? { median: 0, min: 0, max: 0 }
      const unit = spread(bare)?.median ?? 0
      const after = how === 'stop' ? 'an orderly stop' : 'kill -9'
      say(
        `API server ${what}, after ${after}: start to the whole list ${median.toFixed(0)} ms (${min.toFixed(0)} to ${max.toFixed(0)}), ${(median / unit).toFixed(1)} times \`node -e 0\` (${unit.toFixed(0)}); idle then ${idle.toFixed(0)} MB`,
      )
    }
  }
}

/** Lets what is garbage be collected, as far as a process does that by itself. */
const settled = (): Promise<void> => sleep(3000)

/** A port that takes connections and says nothing. */
async function silence(): Promise<{ port: number } & Disposable> {
  const server = createServer(() => undefined)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, [Symbol.dispose]: () => server.close() }
}

{
  await using lifetime = new Lifetime(say)
  try {
    await measure(lifetime)
  } catch (error) {
    lifetime.failed = true
    console.error(error)
    process.exitCode = 1
  }
}
process.exit()
