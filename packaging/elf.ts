import { closeSync, openSync, readSync } from 'node:fs'

/** A processor, by its names in Debian and in RPM. */
export interface Architecture {
  readonly debian: 'amd64' | 'arm64'
  readonly rpm: 'x86_64' | 'aarch64'
}

/** By `e_machine` of elf(5). */
const machines = new Map<number, Architecture>([
  [62, { debian: 'amd64', rpm: 'x86_64' }],
  [183, { debian: 'arm64', rpm: 'aarch64' }],
])

const magic = Buffer.from('\x7fELF')

/** The processor that a program is for. Throws if it is no program for Linux on amd64 or arm64. */
export function architectureOf(program: string): Architecture {
  const head = Buffer.alloc(20)
  const file = openSync(program, 'r')
  try {
    readSync(file, head, 0, head.byteLength, 0)
  } finally {
    closeSync(file)
  }
  const found = head.subarray(0, 4).equals(magic) ? machines.get(head.readUInt16LE(18)) : undefined
  if (found === undefined) throw new Error(`${program} is no program for Linux on amd64 or arm64`)
  return found
}
