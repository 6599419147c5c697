import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

/** The machine that figures were taken on, in a line. */
export const machine = (): string =>
  [
    `${cpus().length} cores (${cpus()[0]?.model.trim() ?? 'unknown'})`,
    `${Math.round(totalmem() / 2 ** 30)} GB`,
    `${process.platform} ${release()}`,
    `Node ${process.versions.node}`,
  ].join(', ')

/** The commit of a checkout, with `+` where tracked files differ from it. */
export function commitOf(folder: string): string {
  const git = (...args: string[]): string | undefined => {
    const { status, stdout } = spawnSync('git', ['-C', folder, ...args], { encoding: 'utf8' })
    return status === 0 ? stdout.trim() : undefined
  }
  const commit = git('rev-parse', '--short=10', 'HEAD')
  if (commit === undefined) return 'unknown'
  return commit + (git('status', '--porcelain', '--untracked-files=no') === '' ? '' : '+')
}

const lookedAtMs = 2000

/** How many cores programs take at the moment, this one not measuring. */
export async function busyCores(): Promise<number> {
  const before = busySeconds()
  const from = performance.now()
  await sleep(lookedAtMs)
  return (busySeconds() - before) / ((performance.now() - from) / 1000)
}

/** All of the first line of `/proc/stat` but idle time and waits for a disk. */
function busySeconds(): number {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n')
  const [user, nice, system, , , interrupts, soft, stolen] = line.split(/\s+/).slice(1).map(Number)
  const all = [user, nice, system, interrupts, soft, stolen]
  return all.reduce<number>((sum, ticks) => sum + (ticks ?? 0), 0) / 100
}
