import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { until } from '../../kit/until.ts'
import { masked } from './mask.ts'

export interface Said {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

interface SessionOptions {
  readonly kubectl: string
  readonly kubeconfig: string
  readonly namespace: string
  /** Discovery is kept here: each session has its own, as users have. */
  readonly cacheFolder: string
}

/**
 * One user's kubectl on one server and in one namespace; what it says comes masked, fit for
 * comparing.
 */
export class Session {
  readonly namespace: string
  /** Its own: for discovery that it keeps, and for what is written for it. */
  readonly folder: string
  readonly #options: SessionOptions

  constructor(options: SessionOptions) {
    this.namespace = options.namespace
    this.folder = options.cacheFolder
    this.#options = options
  }

  /**
   * Runs to the end. Where kubectl has lost a race of its own, it runs anew: its WebSocket client
   * reads before it has made its streams, and drops what a server sends until then (client-go
   * tools/remotecommand/websocket.go).
   */
  async run(args: readonly string[], { input = '', editor = '' } = {}): Promise<Said> {
    for (let tries = 1; ; tries++) {
      const running = this.#spawn(args, editor)
      running.child.stdin?.end(input)
      await once(running.child, 'close')
      const told = this.#told(running)
      if (tries === 3 || !/closed all streams|Unknown stream id/.test(told.stderr)) return told
    }
  }

  /**
   * Runs a command that has no end of its own until `enough` of its output was seen, then hands
   * over what `act` made of it.
   */
  async runUntil<Made>(
    args: readonly string[],
    enough: (stdout: string) => boolean,
    act: (stdout: string, heardSoFar: () => string) => Promise<Made>,
  ): Promise<{ said: string; made: Made }> {
    const running = this.#spawn(args)
    running.child.stdin?.end()
    try {
      const stdout = await until(
        `kubectl ${args.join(' ')} to say enough`,
        () => enough(running.stdout()) && running.stdout(),
        { describe: () => [running.stdout(), running.stderr()] },
      )
      const made = await act(stdout, () => running.stdout())
      return { said: masked(running.stdout(), this.namespace), made }
    } finally {
      const gone = once(running.child, 'close')
      running.child.kill('SIGKILL')
      await gone
    }
  }

  /** The same kubectl with the same settings, for a script; what it says is not told. */
  commandLine(args: readonly string[]): string {
    const words = [this.#options.kubectl, ...this.#settings(), ...args]
    return `${words.map((word) => `'${word}'`).join(' ')} >/dev/null 2>&1`
  }

  #settings(): string[] {
    const { kubeconfig, namespace, cacheFolder } = this.#options
    return [`--kubeconfig=${kubeconfig}`, `--namespace=${namespace}`, `--cache-dir=${cacheFolder}`]
  }

  #spawn(args: readonly string[], editor = ''): Running {
    const { kubectl, cacheFolder } = this.#options
    const child = spawn(kubectl, [...this.#settings(), ...args], {
      // By this name it presents itself to the server, whatever its file is called here.
      argv0: 'kubectl',
      env: {
        PATH: process.env['PATH'],
        HOME: cacheFolder,
        TMPDIR: cacheFolder,
        KUBE_EDITOR: editor,
      },
    })
    return new Running(child)
  }

  #told(running: Running): Said {
    return {
      status: running.child.exitCode,
      stdout: masked(running.stdout(), this.namespace),
      stderr: masked(running.stderr(), this.namespace),
    }
  }
}

class Running {
  readonly child: ChildProcess
  readonly #stdout: Buffer[] = []
  readonly #stderr: Buffer[] = []

  constructor(child: ChildProcess) {
    this.child = child
    // A command that reads nothing may be gone before it is told that there is nothing.
    child.stdin?.on('error', () => undefined)
    child.stdout?.on('data', (chunk: Buffer) => this.#stdout.push(chunk))
    child.stderr?.on('data', (chunk: Buffer) => this.#stderr.push(chunk))
  }

  stdout(): string {
    return Buffer.concat(this.#stdout).toString()
  }

  stderr(): string {
    return Buffer.concat(this.#stderr).toString()
  }
}
