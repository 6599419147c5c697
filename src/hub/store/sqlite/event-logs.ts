import type { ObjectRow } from './object-row.ts'
import { crc32 } from 'node:zlib'
import type { DatabaseSync } from 'node:sqlite'
import type { ObjectEvent } from '../../../api/codec/watch.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import type { Objects } from './objects.ts'
import { prepare, type Row } from './statements.ts'

/**
 * How much a ring holds. As an API server's watch cache (apiserver
 * pkg/storage/cacher/watch_cache.go) it grows while the oldest of its events is younger than 75
 * seconds, so that a reader who has only bookmarks to go by, once a minute, finds its version; and
 * shrinks again to the last hundred. An API server goes to 102,400 events; here a body that is kept
 * for longer is written once more by a checkpoint, and a row that is used again soon is not.
 */
export const freshEventMs = 75_000
export const minEvents = 100
export const maxEvents = 2_000
export const maxEventBytes = 1 << 20

/** Events are let go of so many at a time, as each time writes more pages. */
const slack = 32

/**
 * Characters of the newest events that are kept in the row of the collection, which fits on one
 * page with them: each event writes that page anyway, and they write one of their own together.
 */
const tailLength = 1_200

/** Beyond so many, the oldest two gaps count as one. */
const maxGaps = 8

/** As `event.type`: what was released is not renumbered. */
export const eventTypes = ['ADDED', 'MODIFIED', 'DELETED'] as const

/** Versions between which a ring knows nothing, both of them exclusive. */
type Gap = readonly [from: string, to: string]

/** A collection as its row has it. */
export interface LoggedCollection {
  readonly id: number
  readonly scope: number
  readonly version: string
}

/**
 * Of what the row of an event says, but for its bodies, whose own checksums are of their names and
 * versions.
 */
export const checksumOf = (
  seq: number,
  type: ObjectEvent['type'],
  version: string,
  previous: string | undefined,
): number => crc32(`${seq}\0${type}\0${version}\0${previous ?? ''}`) | 0

interface EventLog {
  first: number
  next: number
  bytes: number
  /** How many events there are before it is looked which of them may go. */
  due: number
  /** As `collection.ring_tail` is to be. */
  tail: EventColumns[]
}

/** The columns of `event` in their order, but for the collection. */
type EventColumns = readonly (string | number | null)[]

/** Where in it the columns are that `release` and `sum` need. */
const referenceColumns = [4, 5, 6, 9, 10, 13] as const
const sizeAt = 9

/**
 * The writer's view of rings: the events of each whole collection since `ring_from`, each written
 * in the transaction that applies it. A ring that cannot be continued starts anew, and who is
 * behind has to list: a hole is never passed over.
 *
 * A list that shows what was held already takes nothing away from who is at the version before it,
 * or at its own. But a client that was told of something in between, which is gone again, would
 * never hear of that: in between there is a gap.
 */
export class EventLogs {
  readonly #objects: Objects
  readonly #logs = new Map<number, EventLog>()
  readonly #sql

  constructor(db: DatabaseSync, objects: Objects) {
    this.#objects = objects
    const columns = 'namespace, name, body, size, previous_body, previous_size'
    this.#sql = {
      find: prepare(
        db,
        `SELECT ring_first, ring_next, ring_tail, count(seq), coalesce(sum(size), 0)
         FROM collection LEFT JOIN event ON event.collection = collection.id WHERE collection.id = ?`,
      ),
      add: prepare(
        db,
        `INSERT INTO event (collection, seq, checksum, type, told_at, namespace, name, body, uid, version, size,
           previous_body, previous_uid, previous_version, previous_size)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ),
      oldest: prepare(
        db,
        `SELECT ${columns}, seq, told_at, version FROM event
         WHERE collection = ? ORDER BY seq LIMIT ${2 * slack}`,
      ),
      remove: prepare(db, 'DELETE FROM event WHERE collection = ? AND seq <= ?'),
      clear: prepare(db, `DELETE FROM event WHERE collection = ? RETURNING ${columns}`),
      begin: prepare(db, 'UPDATE collection SET ring_from = ?, ring_gaps = ? WHERE id = ?'),
      number: prepare(
        db,
        'UPDATE collection SET ring_first = ?, ring_next = ?, ring_tail = ? WHERE id = ?',
      ),
      setGaps: prepare(db, 'UPDATE collection SET ring_gaps = ? WHERE id = ?'),
      gaps: prepare(db, 'SELECT ring_gaps FROM collection WHERE id = ?'),
      damaged: prepare(
        db,
        `SELECT DISTINCT collection.id, collection.version
         FROM collection JOIN told ON told.collection = collection.id
         WHERE scope = ?1 AND told.namespace = ?2 AND name = ?3
           AND ((body = ?5 AND told.version = ?4) OR (previous_body = ?5 AND previous_version = ?4))`,
      ),
    }
  }

  /** Takes an event in, which is newer than all before it. */
  add(
    of: LoggedCollection,
    type: ObjectEvent['type'],
    object: ObjectRow,
    previous: ObjectRow | undefined,
    at: number,
  ): void {
    const log = this.#log(of)
    const event = [
      log.next,
      checksumOf(log.next, type, object.resourceVersion, previous?.resourceVersion),
      eventTypes.indexOf(type),
      at,
      object.namespace,
      object.name,
      object.id,
      object.uid,
      object.resourceVersion,
      object.size,
      previous?.id ?? null,
      previous && previous.uid !== object.uid ? previous.uid : null,
      previous?.resourceVersion ?? null,
      previous?.size ?? null,
    ]
    log.tail.push(event)
    this.#objects.addEvent(object)
    if (previous) this.#objects.addEvent(previous)
    log.next += 1
    log.bytes += object.size
  }

  /**
   * To be called after what was added at the time `at`; lets go of the oldest events where there
   * are too many.
   */
  added(of: LoggedCollection, at: number): void {
    const log = this.#log(of)
    const isDue = countOf(log) > log.due || log.bytes > maxEventBytes
    if (isDue || JSON.stringify(log.tail).length > tailLength) {
      for (const event of log.tail) this.#sql.add.run(of.id, ...event)
      log.tail = []
    }
    if (isDue) this.#trim(of, log, at)
    this.#sql.number.run(log.first, log.next, JSON.stringify(log.tail), of.id)
  }

  #trim(of: LoggedCollection, log: EventLog, at: number): void {
    let from: string | undefined
    for (let version = this.#trimOnce(of, log, at); version;) {
      from = version
      version = this.#trimOnce(of, log, at)
    }
    log.due = Math.max(countOf(log), minEvents) + slack
    if (from === undefined) return
    const begin = from
    const gaps = this.#gaps(of.id).filter(([, to]) => isNewer(to, begin))
    this.#sql.begin.run(begin, JSON.stringify(gaps), of.id)
  }

  /** The version of the last event that went; `undefined` where none did. */
  #trimOnce({ id, scope }: LoggedCollection, log: EventLog, at: number): string | undefined {
    let last: Row | undefined
    for (const row of this.#sql.oldest.all(id)) {
      if (!isDue(log, Number(row[7]), at)) break
      this.#release(scope, row)
      log.first += 1
      log.bytes -= Number(row[3])
      last = row
    }
    if (last === undefined) return undefined
    this.#sql.remove.run(id, Number(last[6]))
    return String(last[8])
  }

  /** From now on the ring knows what happens after `version`, and nothing else. */
  restart({ id, scope }: Omit<LoggedCollection, 'version'>, version: string): void {
    const tail = this.#logs.get(id)?.tail ?? tailIn(this.#sql.find.get(id)?.[2])
    for (const event of tail)
      this.#release(
        scope,
        referenceColumns.map((at) => event[at] ?? null),
      )
    for (const row of this.#sql.clear.all(id)) this.#release(scope, row)
    this.#logs.delete(id)
    this.#sql.number.run(1, 1, '[]', id)
    this.#sql.begin.run(version, '[]', id)
  }

  /** A list at `version`, newer than the collection, showed what was held already. */
  unchanged({ id, version: before }: LoggedCollection, version: string): void {
    const gaps = [...this.#gaps(id), [before, version] as const]
    const [[from] = [''], [, to] = ['', ''], ...rest] = gaps
    const kept = gaps.length > maxGaps ? [[from, to], ...rest] : gaps
    this.#sql.setGaps.run(JSON.stringify(kept), id)
  }

  /** What cannot be read any more is in none of them. */
  quarantine(scope: number, namespace: string, name: string, version: string, body: number): void {
    for (const [id, at] of this.#sql.damaged.all(scope, namespace, name, version, body)) {
      this.restart({ id: Number(id), scope }, String(at))
    }
  }

  /** What is known of the tables may not be so. */
  forget(): void {
    this.#logs.clear()
  }

  #log(of: LoggedCollection): EventLog {
    const known = this.#logs.get(of.id)
    if (known) return known
    const [first = 1, next = 1, text = '[]', rows = 0, sum = 0] = this.#sql.find.get(of.id) ?? []
    const numbered = { first: Number(first), next: Number(next) }
    const tail = tailIn(text)
    // Some of it may be lost, where a page was damaged.
    const isWhole = Number(rows) + tail.length === countOf(numbered)
    if (!isWhole) this.restart(of, of.version)
    const bytes = tail.reduce((total, event) => total + Number(event[sizeAt]), Number(sum))
    const log = isWhole ? { ...numbered, bytes, tail } : { first: 1, next: 1, bytes: 0, tail: [] }
    const due = Math.max(countOf(log), minEvents) + slack
    const found: EventLog = { ...log, due }
    this.#logs.set(of.id, found)
    return found
  }

  #gaps(id: number): readonly Gap[] {
    return gapsIn(this.#sql.gaps.get(id)?.[0])
  }

  #release(scope: number, [namespace, name, body, size, previous, previousSize]: Row): void {
    const named = { namespace: String(namespace), name: String(name) }
    this.#objects.releaseEvent(scope, { ...named, id: Number(body), size: Number(size) })
    if (previous === null) return
    this.#objects.releaseEvent(scope, {
      ...named,
      id: Number(previous),
      size: Number(previousSize),
    })
  }
}

const countOf = ({ first, next }: Pick<EventLog, 'first' | 'next'>): number => next - first

const isDue = (log: EventLog, toldAt: number, at: number): boolean =>
  countOf(log) > maxEvents - slack ||
  log.bytes > maxEventBytes - maxEventBytes / 8 ||
  (countOf(log) > minEvents && toldAt < at - freshEventMs)

/** As `collection.ring_gaps` has them. */
export const gapsIn = (text: unknown): readonly Gap[] => JSON.parse(String(text)) as readonly Gap[]

/** As `collection.ring_tail` has it; nothing where that is damaged. */
function tailIn(text: unknown): EventColumns[] {
  try {
    const tail: unknown = JSON.parse(String(text))
    return Array.isArray(tail) ? (tail as EventColumns[]) : []
  } catch {
    return []
  }
}
