import { readFileSync, statSync } from 'node:fs'

/**
 * The process that holds a lock on the file according to /proc/locks (proc(5)); `undefined` where
 * that is not known: not Linux, another PID namespace, a file system with other device numbers.
 */
export function lockHolder(path: string): number | undefined {
  try {
    const { dev, ino } = statSync(path)
    const major = (dev >> 8) & 0xfff
    const minor = (dev & 0xff) | ((dev >> 12) & 0xfff00)
    const hex = (number: number): string => number.toString(16).padStart(2, '0')
    const file = `${hex(major)}:${hex(minor)}:${ino}`
    const held = readFileSync('/proc/locks', 'utf8')
      .split('\n')
      .map((line) => line.split(/\s+/))
      .find((fields) => fields.includes(file) && fields.includes('WRITE'))
    const pid = Number(held?.[held.indexOf(file) - 1])
    return pid > 0 ? pid : undefined
  } catch {
    return undefined
  }
}
