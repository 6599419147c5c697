/**
 * A copy of the repository in which tests run against a fault, and what they leave behind is ended.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

export type Outcome = 'passed' | 'failed' | 'timed out'

export interface Ran {
  readonly outcome: Outcome
  readonly ms: number
  /** The end of what the test printed. */
  readonly output: string
}

export interface RunOptions {
  readonly limitMs: number
  readonly env?: Readonly<Record<string, string>>
}

/** Every file that is under version control or could be, as it is now. */
export const filesOf = (root: string): string[] =>
  execFileSync('git', ['ls-files', '-coz', '--exclude-standard'], { cwd: root, encoding: 'utf8' })
    .split('\0')
    .filter((path) => path !== '' && existsSync(join(root, path)))

const keptOutput = 64 * 1024

/**
 * Tests run here one at a time. Disposing of it ends what still runs in it and removes it. Tests
 * that run something as another user find it readable, as a checkout is.
 */
export class Workspace implements Disposable {
  readonly root: string
  readonly #folder: string

  constructor(from: string, files: readonly string[]) {
    this.#folder = mkdtempSync(join(tmpdir(), 'mutants-'))
    this.root = join(this.#folder, 'nodehub')
    chmodSync(this.#folder, 0o755)
    for (const path of files) {
      mkdirSync(dirname(join(this.root, path)), { recursive: true })
      cpSync(join(from, path), join(this.root, path))
    }
    symlinkSync(join(from, 'node_modules'), join(this.root, 'node_modules'))
  }

  read(path: string): string {
    return readFileSync(join(this.root, path), 'utf8')
  }

  write(path: string, text: string): void {
    writeFileSync(join(this.root, path), text)
  }

  /**
   * A folder beside the copy that every user may write to: some tests run a process as another one.
   */
  emptyFolder(name: string): string {
    const folder = join(this.#folder, name)
    remove(folder)
    mkdirSync(folder)
    chmodSync(folder, 0o1777)
    return folder
  }

  /** Runs one file of tests until its first failure, and ends all processes that it leaves. */
  async run(test: string, { limitMs, env = {} }: RunOptions): Promise<Ran> {
    const scratch = this.emptyFolder('t')
    const began = performance.now()
    const child = spawn(process.execPath, [test], {
      cwd: this.root,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      // tap's own limit would end the test before this one does, and without saying that it was
      // time.
      env: { ...process.env, TMPDIR: scratch, TAP_BAIL: '1', TAP_TIMEOUT: '100000', ...env },
    })
    let output = ''
    const hear = (text: string): void => {
      output = (output + text).slice(-keptOutput)
    }
    child.stdout.setEncoding('utf8').on('data', hear)
    child.stderr.setEncoding('utf8').on('data', hear)
    let late = false
    const timer = setTimeout(() => {
      late = true
      this.#killAll(child.pid)
    }, limitMs)
    const [code] = (await once(child, 'exit')) as [number | null]
    clearTimeout(timer)
    this.#killAll(child.pid)
    child.stdout.destroy()
    child.stderr.destroy()
    const outcome = late ? 'timed out' : code === 0 ? 'passed' : 'failed'
    return { outcome, ms: performance.now() - began, output }
  }

  /** The test's process group, and whatever has left that and still runs in this folder. */
  #killAll(group: number | undefined): void {
    if (group !== undefined) kill(-group)
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      if (folderOf(pid).startsWith(`${this.#folder}/`)) kill(Number(pid))
    }
  }

  [Symbol.dispose](): void {
    this.#killAll(undefined)
    remove(this.#folder)
  }
}

/**
 * With what killed tests have mounted there, and though killed processes may write for a moment
 * yet.
 */
function remove(folder: string): void {
  const points = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
  for (const point of points.filter((each) => each.startsWith(`${folder}/`)).toReversed())
    execFileSync('umount', ['--lazy', point])
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

function folderOf(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    return ''
  }
}
