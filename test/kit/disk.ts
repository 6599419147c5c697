import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Teardown } from './wire/wire.ts'

/** A small disk of its own, in memory, that can be made to fail. */
export interface Disk {
  readonly path: string
  /** As a kernel does it that has met with errors. Nothing on it may be open for writing. */
  readOnly(): void
  writable(): void
  /** Takes all the room that is left, until `empty`. */
  fill(): void
  empty(): void
}

const run = (command: string, ...args: readonly string[]): boolean =>
  spawnSync(command, args, { stdio: 'ignore' }).status === 0

const mount = (path: string, megabytes: number): boolean =>
  run('mount', '-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', path)

function unmount(path: string): void {
  run('umount', '-l', path)
  rmdirSync(path)
}

const made = (): string => mkdtempSync(join(tmpdir(), 'nodehub-disk-'))

/** Why there is no such disk here, for a test to skip; `false` where there is. */
export function noDisk(): string | false {
  const path = made()
  const mounted = mount(path, 1)
  unmount(path)
  return mounted ? false : 'only who may mount has a disk to fail'
}

export function smallDisk(t: Teardown, megabytes: number): Disk {
  const path = made()
  if (!mount(path, megabytes)) throw new Error(`nothing can be mounted at ${path}`)
  t.teardown(() => unmount(path))
  const remount = (how: string): void => {
    if (!run('mount', '-o', `remount,${how}`, path)) throw new Error(`no remounting ${path} ${how}`)
  }
  const filler = join(path, 'filler')
  return {
    path,
    readOnly: () => remount('ro'),
    writable: () => remount('rw'),
    fill: () => {
      try {
        for (;;) writeFileSync(filler, Buffer.alloc(4096), { flag: 'a' })
      } catch {
        // It is full.
      }
    },
    empty: () => rmSync(filler),
  }
}
