import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const root = '/sys/fs/cgroup'

/**
 * A control group that bounds the memory of the processes in it, on cgroup v2 or v1. Only root can
 * make one.
 */
export class MemoryGroup implements Disposable {
  readonly #folder: string
  readonly #isV2 = existsSync(join(root, 'cgroup.controllers'))

  constructor(name: string, limitBytes: number) {
    this.#folder = this.#isV2 ? join(root, name) : join(root, 'memory', name)
    mkdirSync(this.#folder)
    this.#write(this.#isV2 ? 'memory.max' : 'memory.limit_in_bytes', `${limitBytes}`)
  }

  /** A command line that runs `command` as a member of this group from its first instruction on. */
  running(command: string, args: readonly string[]): { command: string; args: string[] } {
    const members = join(this.#folder, 'cgroup.procs')
    return {
      command: 'sh',
      args: ['-c', 'echo $$ > "$0" && exec "$@"', members, command, ...args],
    }
  }

  /** Anonymous memory in bytes: what the kernel cannot take back. */
  get anonymousBytes(): number {
    return this.#figure('memory.stat', this.#isV2 ? 'anon' : 'total_rss')
  }

  /** How often the kernel killed a process of the group for want of memory. */
  get kills(): number {
    return this.#figure(this.#isV2 ? 'memory.events' : 'memory.oom_control', 'oom_kill')
  }

  #figure(file: string, name: string): number {
    const text = readFileSync(join(this.#folder, file), 'utf8')
    const line = text.split('\n').find((each) => each.startsWith(`${name} `))
    if (line === undefined) throw new Error(`${file} of the control group has no ${name}`)
    return Number(line.slice(name.length + 1))
  }

  #write(file: string, text: string): void {
    writeFileSync(join(this.#folder, file), text)
  }

  /** Its processes must have ended. */
  [Symbol.dispose](): void {
    rmdirSync(this.#folder)
  }
}
