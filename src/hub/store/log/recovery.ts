import { bodiesAt } from '../state/held.ts'
import { LogFolder, format, segmentsIn, type Segment, type SegmentRecord } from './segments.ts'
import { bodiesAreWhole, frameAt, nextFrame, scopeMark, type Frame } from './frame.ts'
import { textOfResource } from '../state/address.ts'
import type { LogRecord } from '../state/record.ts'
import type { State } from '../state/state.ts'

export interface Recovered extends Pick<SegmentRecord, 'from'> {
  /** Damaged records. */
  readonly damaged: number
  /** There are files, and none can be read. */
  readonly isUnusable: boolean
}

/** The log was written by a later release. */
export class LaterFormat extends Error {
  readonly code = 'LATER_FORMAT'
}

interface Head {
  readonly segment: Segment
  readonly record: SegmentRecord
  readonly end: number
}

/** More than the first frame of a segment takes, also one of a later release. */
const headBytes = 1 << 10
/** A segment that has another frame is longer. */
const begunBytes = 128

/**
 * Reads the log into `state`. Bodies are not read, but for what a power cut may have taken. Throws
 * `LaterFormat`, and the system's errors where the disk cannot be read.
 */
export function recover(folder: LogFolder, state: State): Recovered {
  const ids = segmentsIn(folder.path)
  for (const id of ids) {
    const segment = folder.segment(id)
    segment.synced = segment.end = segment.size()
  }
  const last = ids
    .toReversed()
    .reduce<Head | undefined>((found, id) => found ?? headOf(folder, id), undefined)
  const isLonger = (id: number): boolean => folder.segment(id).end > begunBytes
  if (!last) return { from: Infinity, damaged: 0, isUnusable: ids.some(isLonger) }
  const { from } = last.record
  let damaged = 0
  for (let id = from; id <= last.segment.id; id += 1) {
    const head = headOf(folder, id)
    const next = headOf(folder, id + 1)
    const isLast = id === last.segment.id
    const isShort = next !== undefined && folder.segment(id).end < next.record.before
    if (!head || isShort) {
      state.drop(() => true)
      damaged += 1
    } else {
      if (next) head.segment.end = next.record.before
      damaged += replay(head, state, isLast)
    }
  }
  for (const id of ids) {
    if (id <= last.segment.id) continue
    // One that was only begun has no records.
    if (isLonger(id)) {
      state.drop(() => true)
      damaged += 1
    }
    folder.segments.delete(id)
  }
  return { from, damaged, isUnusable: false }
}

/** `undefined`: there is none, or it cannot be read. */
function headOf(folder: LogFolder, id: number): Head | undefined {
  const segment = folder.segments.get(id)
  if (!segment) return undefined
  const bytes = segment.read(0, Math.min(headBytes, segment.size()))
  const frame = frameAt(bytes, id, 0)
  if (!frame?.recordIsWhole) return undefined
  const record = JSON.parse(String(frame.record)) as SegmentRecord
  if (record.format > format)
    throw new LaterFormat(
      `its log has the format ${record.format}, and this release reads formats up to ${format}`,
    )
  return record.format < format ? undefined : { segment, record, end: frame.end }
}

/** Applies the records of a segment; returns how many were damaged. */
function replay({ segment, end }: Head, state: State, isLast: boolean): number {
  const bytes = segment.read(0, segment.end)
  const found: { readonly at: number; readonly frame: Frame | undefined }[] = []
  for (let at: number | undefined = end; at !== undefined && at < bytes.byteLength;) {
    const frame = frameAt(bytes, segment.id, at)
    found.push({ at, frame })
    at = frame ? frame.end : nextFrame(bytes, segment.id, at)
  }
  // What was on the disk before a crash has not been torn by it: it is damaged.
  const synced = isLast
    ? found.reduce((most, { frame }) => Math.max(most, frame?.synced ?? 0), 0)
    : segment.end
  segment.synced = synced
  let damaged = 0
  for (const { at, frame } of found) {
    const isWhole = frame?.recordIsWhole === true
    if (at >= synced && !(isWhole && bodiesAreWhole(bytes, frame))) {
      segment.end = at
      return damaged
    }
    if (frame && isWhole) applyFrame(frame, segment.id, state)
    else {
      const scope = frame?.scope ?? 0
      // In any encoding: a list that is older would say of what is lost that it is absent.
      const of = [...state.scopes.values()].find(({ key }) => scopeMark(key) === scope)
      const lost = of && textOfResource(of.key)
      state.drop((key) => lost === undefined || textOfResource(key) === lost)
      damaged += 1
    }
  }
  return damaged
}

function applyFrame(frame: Frame, segment: number, state: State): void {
  const record = JSON.parse(String(frame.record)) as LogRecord
  const bodies = bodiesAt(segment, frame.bodiesAt, record.bodies ?? [])
  state.apply(record, bodies)
}

/**
 * Why this release could not use the log in `directory`: a later one wrote it. `undefined` where it
 * could, where there is none, and where it cannot be read.
 */
export function whyLater(directory: string): string | undefined {
  const folder = new LogFolder(directory)
  try {
    for (const id of segmentsIn(directory)) headOf(folder, folder.segment(id).id)
    return undefined
  } catch (cause) {
    return cause instanceof LaterFormat ? `${directory}: ${cause.message}` : undefined
  } finally {
    folder.close()
  }
}
