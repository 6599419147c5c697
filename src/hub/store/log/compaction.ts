import { pause } from '../../../base/clock.ts'
import type { Body, Segment } from './body.ts'
import type { LogFolder } from './folder.ts'
import type { LogWriter } from './log-writer.ts'
import { snapshotOf } from './scope.ts'
import type { State } from './state.ts'
import type { Composed, WritePath, Written } from './write-path.ts'

/** Bodies copied at once, and how long other writes have the disk to themselves in between. */
const copyBytes = 256 << 10
const restMs = 20

/** Segments that are not worth a file. */
const smallBytes = 64 << 10

/** Segments with a larger share of bodies in use are left as they are. */
const mostLive = { whenIdle: 0.6, inNeed: 0.95, anew: Infinity }

export interface CompactionParts {
  readonly state: State
  readonly log: LogWriter
  readonly folder: LogFolder
  readonly path: WritePath
  /** Aborts when the store is closed. */
  readonly closing: AbortSignal
}

/**
 * Writes the log anew: copies bodies in use out of segments that are mostly garbage, then the state
 * of each scope, and removes what is not needed any more. From then on a start reads what was
 * written since this began; until its end all that was there is left in place. `inNeed`: what is to
 * be written waits for the room. `anew`: nothing of what was written before may be relied on.
 */
export async function compact(
  { state, log, folder, path, closing }: CompactionParts,
  need: keyof typeof mostLive,
): Promise<void> {
  const write = async (
    compose: () => Composed | undefined,
    applied: (written?: Written) => void = () => undefined,
  ): Promise<void> => {
    await path.push({ compose, bytes: 0, first: true, applied })
    if (need === 'whenIdle') await pause(restMs, closing)
  }
  let begun = 0
  let losses = 0
  await path.exclusively(async () => {
    begun = await log.rotate()
    losses = log.losses
  })
  const old = [...folder.segments.values()].filter(({ id }) => id < begun)
  // A sync may have failed since this was planned.
  const most = mostLive[log.hasLost ? 'anew' : need]
  const victims = new Set(old.filter(({ live, end }) => live < most * end || end < smallBytes))
  for (const group of groupsOf(bodiesIn(state, victims))) {
    let moved: readonly Body[] = []
    const compose = (): Composed | undefined => {
      moved = group.filter((body) => body.isHeld && victims.has(body.segment))
      const bodies = moved.map(({ segment, offset, length }) => segment.read(offset, length))
      return moved.length > 0 ? { record: { kind: 'bodies' }, bodies } : undefined
    }
    await write(compose, (written) => {
      if (!written) return
      let { offset } = written
      for (const body of moved) {
        body.moveTo(written.segment, offset)
        offset += body.length
      }
    })
  }
  for (const scope of state.scopes.values())
    await write(() =>
      state.scope(scope.key) === scope ? { record: snapshotOf(scope) } : undefined,
    )
  await path.exclusively(async () => {
    await log.sync()
    if (log.losses > losses) throw new Error('the disk failed while the log was written anew')
    log.from = begun
    log.repaired = losses
    await log.rotate()
  })
  for (const each of old) if (each.live === 0) folder.remove(each)
}

function bodiesIn(state: State, segments: ReadonlySet<Segment>): Set<Body> {
  const bodies = new Set<Body>()
  for (const { records, collections } of state.scopes.values()) {
    for (const { held } of records.values()) bodies.add(held.body)
    for (const { members } of collections.values())
      for (const { body } of members.values()) bodies.add(body)
  }
  for (const body of bodies) if (!segments.has(body.segment)) bodies.delete(body)
  return bodies
}

function* groupsOf(bodies: Iterable<Body>): Iterable<readonly Body[]> {
  let group: Body[] = []
  let bytes = 0
  for (const body of bodies) {
    group.push(body)
    bytes += body.length
    if (bytes < copyBytes) continue
    yield group
    group = []
    bytes = 0
  }
  if (group.length > 0) yield group
}
