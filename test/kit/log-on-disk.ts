import { closeSync, openSync, readdirSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { frameAt, framed } from '../../src/hub/store/log/frame.ts'
import type { ObjectMark } from '../../src/hub/store/state/held.ts'
import type { LogRecord } from '../../src/hub/store/state/record.ts'
import { Segment } from '../../src/hub/store/log/segments.ts'

/** A record of a stopped store, and where it is in its file. */
export interface FoundRecord {
  readonly file: string
  readonly record: LogRecord
  readonly begin: number
  readonly bodiesAt: number
  readonly end: number
}

export const logFilesIn = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.log'))
    .map((name) => join(folder, name))
    .toSorted()

/** All records in the files of the log. */
export function recordsIn(folder: string): FoundRecord[] {
  return logFilesIn(folder).flatMap((file) => {
    const bytes = readFileSync(file)
    const found: FoundRecord[] = []
    const id = Number(/(\d+)\.log$/.exec(file)?.[1])
    for (let begin = 0, frame = frameAt(bytes, id, 0); frame; frame = frameAt(bytes, id, begin)) {
      const record = JSON.parse(String(frame.record)) as LogRecord
      found.push({ file, record, begin, bodiesAt: frame.bodiesAt, end: frame.end })
      begin = frame.end
    }
    return found
  })
}

export function flip(file: string, at: number, bit = 1): void {
  const bytes = readFileSync(file)
  bytes[at]! ^= bit
  writeFileSync(file, bytes)
}

/** Damages each stored body of objects of this name. */
export function damageBodies(folder: string, name: string): void {
  for (const { file, record, bodiesAt } of recordsIn(folder)) {
    if (!('bodies' in record)) continue
    const names = namesIn(record)
    let offset = bodiesAt
    for (const [at, [length, , , segment, placed]] of (record.bodies ?? []).entries()) {
      const here = placed ?? offset
      const path =
        segment === undefined ? file : join(folder, `${String(segment).padStart(10, '0')}.log`)
      if (names[at] === name) damageAt(path, here)
      if (placed === undefined) offset += length
    }
  }
}

function damageAt(path: string, offset: number): void {
  const fd = openSync(path, 'r+')
  writeSync(fd, '\0', offset)
  closeSync(fd)
}

/** By the position of their bodies. */
function namesIn(record: LogRecord): (string | undefined)[] {
  const nameOf = ([, name]: ObjectMark): string => name
  if (record.kind === 'apply' || record.kind === 'list') return record.objects?.map(nameOf) ?? []
  if (record.kind === 'put') return [record.object[1]]
  if (record.kind !== 'scope') return []
  return [...record.records, ...record.collections].flatMap(({ objects }) => objects.map(nameOf))
}

/** The disk takes no writes of this process's stores until this is disposed of. */
export function refusingDisk(): Disposable {
  const append = Reflect.get(Segment.prototype, 'append') as Segment['append']
  const create = Reflect.get(Segment.prototype, 'create') as Segment['create']
  const refuse = (): never => {
    throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
  }
  Segment.prototype.append = async () => refuse()
  Segment.prototype.create = refuse
  return { [Symbol.dispose]: () => Object.assign(Segment.prototype, { append, create }) }
}

/** Leaves a log of a later release in the folder. */
export function laterLog(folder: string): void {
  const record = { kind: 'segment', format: 1000, from: 1, before: 0 } as const
  writeFileSync(
    join(folder, '0000000001.log'),
    Buffer.concat(framed({ record }, { id: 1, synced: 0 }, 0).parts),
  )
}
