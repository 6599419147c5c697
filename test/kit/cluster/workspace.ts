import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { plainNode } from './plain-node.ts'

/** What the kit needs of a tap test. */
export interface Scope {
  teardown(act: () => Promise<void> | void): unknown
  comment(...args: unknown[]): void
  passing(): boolean
}

/** A temporary folder for processes and whatever they leave on the machine. */
export interface Workspace {
  readonly path: string
  /** Unlike any other's: also the name of the control group for the containers started here. */
  readonly name: string
  readonly file: (...names: string[]) => string
}

const reaperScript = fileURLToPath(new URL('./reaper.ts', import.meta.url))

/**
 * Makes the folder and a reaper: a process of its own that waits for this one to let go of a pipe,
 * on purpose at teardown or by dying in whatever way, and then ends and removes all that belongs to
 * the folder. The ends of the logs are shown when the test failed.
 */
export function openWorkspace(t: Scope): Workspace {
  const path = mkdtempSync(join(tmpdir(), 'nodehub-'))
  const reaper = spawn(...plainNode(reaperScript, path), {
    detached: true,
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  t.teardown(async () => {
    if (!t.passing()) for (const line of logTails(path)) t.comment(line)
    const gone = once(reaper, 'exit')
    reaper.stdin.end()
    await gone
  })
  return { path, name: basename(path), file: (...names) => join(path, ...names) }
}

/** The last lines of every log in a workspace, each under its name. */
function logTails(path: string, lines = 15): string[] {
  const logs = readdirSync(path).filter((name) => name.endsWith('.log'))
  return logs.map((name) => {
    const tail = readFileSync(join(path, name), 'utf8').trimEnd().split('\n').slice(-lines)
    return [`--- ${name}`, ...tail.map((line) => line.slice(0, 600))].join('\n')
  })
}
