import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { promisify } from 'node:util'
import { findBinaries } from './cluster/binaries.ts'

const exec = promisify(execFile)

/** Of what the packager downloads and unpacks. */
const maxBuffer = 64 * 2 ** 20

/** Why no root of Debian can be made here; false where one can, as far as is known before. */
export function noDebianRoot(): string | false {
  const found = findBinaries(['debootstrap', 'chroot', 'unshare', 'mount', 'dpkg-deb'])
  if ('missing' in found) return found.missing
  return process.getuid?.() === 0 ? false : 'only root makes the root of another system'
}

/** A minimal Debian in a folder, whose programs run there; it shares network and kernel. */
export class DebianRoot {
  readonly path: string

  private constructor(path: string) {
    this.path = path
  }

  /** `undefined` where no mirror of Debian can be reached. */
  static async make(path: string, packages: readonly string[]): Promise<DebianRoot | undefined> {
    const args = ['--variant=minbase', `--include=${packages.join()}`, 'stable', path]
    try {
      await exec('debootstrap', args, { maxBuffer })
    } catch (cause) {
      const { stdout } = cause as { readonly stdout: string }
      if (/E: (?:Failed getting release file|Invalid Release)/.test(stdout)) return undefined
      throw new Error(stdout.slice(-2_000), { cause })
    }
    return new DebianRoot(path)
  }

  /** Resolves to the output; rejects with it where the command fails. */
  async run(...command: readonly string[]): Promise<string> {
    const options = { env: environment, maxBuffer }
    const { stdout, stderr } = await exec('unshare', this.#inside(command), options)
    return stdout + stderr
  }

  /** Starts a program, with its output in a pipe; signals reach it as they are sent. */
  spawn(...command: readonly string[]): ChildProcess {
    return spawn('unshare', [...this.#inside(command)], {
      env: environment,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
  }

  /** Each program replaces the one before. Its mounts end with it. */
  #inside(command: readonly string[]): string[] {
    const script = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
    return ['--mount', '--propagation=private', 'sh', '-c', script, this.path, ...command]
  }
}

/** Without the test runner's; a proxy to the mirror is needed there, too. */
const environment = {
  ...(process.env['http_proxy'] !== undefined && { http_proxy: process.env['http_proxy'] }),
  PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C',
  DEBIAN_FRONTEND: 'noninteractive',
}
