import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../test/kit/free-port.ts'
import { until } from '../../test/kit/until.ts'

/** What came of one phase. */
export interface Figures {
  readonly nodeWrites: number
  readonly poolWrites: number
  readonly requests: number
  /** Requests that the API server would not take for want of room. */
  readonly shed: number
  readonly conflicts: number
  readonly seconds: number
  /** The most that the process has held so far. */
  readonly peakBytes: number
}

type Counters = Omit<Figures, 'seconds' | 'peakBytes'> & {
  readonly nodes: number
  readonly queued: number
}

const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts')

/** `nodehub cluster` as it is run, asked about itself by its metrics. */
export class ClusterProcess implements AsyncDisposable {
  readonly #process: ChildProcess
  readonly #port: number
  #before: Counters = {
    nodeWrites: 0,
    poolWrites: 0,
    requests: 0,
    shed: 0,
    conflicts: 0,
    nodes: 0,
    queued: 0,
  }
  #began = performance.now()

  private constructor(process: ChildProcess, port: number) {
    this.#process = process
    this.#port = port
  }

  static async start(kubeconfig: string): Promise<ClusterProcess> {
    const port = await freePort()
    const flags = [
      `--kubeconfig=${kubeconfig}`,
      '--webhook-address=127.0.0.1',
      '--webhook-port=0',
      '--ops-address=127.0.0.1',
      `--ops-port=${port}`,
      '--log-level=error',
    ]
    const child = spawn(process.execPath, ['--max-semi-space-size=4', main, 'cluster', ...flags], {
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    return new ClusterProcess(child, port)
  }

  /**
   * Waits until all nodes are known, so many were written since the last phase and nothing waits;
   * then what that took.
   */
  async settled(nodeWrites: number, nodes: number): Promise<Figures> {
    const { seconds, now } = await until(
      'the controller to settle',
      async () => {
        const now = await this.#counters()
        const written = now.nodeWrites - this.#before.nodeWrites
        const done = now.nodes === nodes && now.queued === 0 && written >= nodeWrites
        return done && { now, seconds: (performance.now() - this.#began) / 1000 }
      },
      { seconds: 1800 },
    )
    // What would be written more than once is written soon.
    await new Promise((resolve) => setTimeout(resolve, 3000))
    const last = await this.#counters()
    const since = (name: keyof Counters): number => last[name] - this.#before[name]
    const figures = {
      nodeWrites: since('nodeWrites'),
      poolWrites: since('poolWrites'),
      requests: since('requests'),
      shed: since('shed'),
      conflicts: since('conflicts'),
      seconds,
      peakBytes: peakOf(this.#process.pid ?? 0),
    }
    this.#before = { ...last, nodes: now.nodes }
    this.#began = performance.now()
    return figures
  }

  async #counters(): Promise<Counters> {
    const answer = await fetch(`http://127.0.0.1:${this.#port}/metrics`)
    const lines = (await answer.text()).split('\n')
    const sum = (name: string, labels = ''): number =>
      lines
        .filter((line) => line.startsWith(`nodehub_cluster_${name}`) && line.includes(labels))
        .reduce((total, line) => total + Number(line.slice(line.lastIndexOf(' '))), 0)
    return {
      nodeWrites: sum('writes_total', 'kind="node"'),
      poolWrites: sum('writes_total', 'kind="pool'),
      requests: sum('api_requests_total'),
      shed: sum('api_requests_total', 'code="429"'),
      conflicts: sum('conflicts_total'),
      nodes: sum('nodes '),
      queued: sum('queued '),
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode !== null) return
    this.#process.kill('SIGTERM')
    await once(this.#process, 'exit')
  }
}

function peakOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024
}
