/** Prometheus' own checker, from the Debian package `prometheus`, where it is installed. */
import { spawn, spawnSync } from 'node:child_process'
import { text } from 'node:stream/consumers'

interface Checked {
  readonly code: number | null
  /** Of both streams. */
  readonly output: string
}

export const promtool = {
  /** Why tests cannot use it; `false` where they can. */
  missing:
    spawnSync('promtool', ['--version']).status !== 0 &&
    'promtool is not installed (Debian package prometheus)',

  /** Runs it to its end. */
  async run(argv: readonly string[], input = ''): Promise<Checked> {
    // Of the processor time of the longest run, a fifth goes to collections of a small heap.
    const env = { ...process.env, GOGC: '400' }
    const child = spawn('promtool', argv, { stdio: 'pipe', env })
    child.stdin.end(input)
    const ended = Promise.withResolvers<number | null>()
    child.once('error', ended.reject)
    child.once('close', ended.resolve)
    const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)])
    return { code: await ended.promise, output: out + err }
  },
}
