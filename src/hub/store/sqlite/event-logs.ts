import { bodyReference, type ObjectRow } from './object-row.ts'
import { crc32 } from 'node:zlib'
import type { DatabaseSync } from 'node:sqlite'
import type { ObjectEvent } from '../../../api/codec/watch.ts'
import { isNewer, type VersionGap } from '../../../api/kube/resource-version.ts'
import type { Objects } from './objects.ts'
import { prepare, type Row } from './statements.ts'

/**
 * The bounds of an event log. As an API server's watch cache (apiserver
 * pkg/storage/cacher/watch_cache.go), it grows while its oldest event is younger than 75 seconds,
 * so that a client that gets only bookmarks, once a minute, finds its version; and it shrinks to
 * the last hundred. An API server goes up to 102,400 events. Here a body that is kept longer is
 * written once more by a checkpoint, and a row that is used again soon is not.
 */
export const freshEventMs = 75_000
export const minEvents = 100
export const maxEvents = 2_000
export const maxEventBytes = 1 << 20

/** Events are removed this many at a time, as each removal writes more pages. */
const slack = 32

/**
 * Characters of the newest events that are kept in the collection's row, which then still fits on
 * one page. Each event writes that page anyway; together they then write a page of their own.
 */
const tailLength = 1_200

/** Beyond this number, the two oldest gaps are merged. */
const maxGaps = 8

/** The values of `event.type`: their order must not change. */
export const eventTypes = ['ADDED', 'MODIFIED', 'DELETED'] as const

/** The parts of a collection's row that its event log needs. */
export interface LoggedCollection {
  readonly id: number
  readonly scope: number
  readonly version: string
}

/**
 * Covers the row of an event without its bodies, which have their own checksums over names and
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
  /** The number of events at which the oldest are checked for removal. */
  due: number
  /** The next value of `collection.ring_tail`. */
  tail: EventColumns[]
}

/** The columns of `event` in order, without the collection. */
type EventColumns = readonly (string | number | null)[]

/** The positions of the columns that `#release` needs. */
const referenceColumns = [4, 5, 6, 9, 10, 13] as const
const sizeAt = 9

/**
 * The writer's access to the persisted event logs: the events of each complete collection since
 * `ring_from`, each written in the transaction that applies it. A log that cannot be continued is
 * restarted, so that a client at an older version has to list: the log never skips an event.
 *
 * A list without changes keeps the log readable for clients at the version before it, and at its
 * own. A client at a version in between was sent an event that has been undone since, and which the
 * log does not have: that is a gap.
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

  /** Adds an event, which must be newer than all before it. */
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
   * Must be called after the adds of one apply at the time `at`. Removes the oldest events beyond
   * the bounds.
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

  /** The version of the last removed event; `undefined`: none was. */
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

  /** From now on the log has the events after `version`, and none before. */
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

  /** A list at `version`, newer than the collection, brought no change. */
  unchanged({ id, version: before }: LoggedCollection, version: string): void {
    const gaps = [...this.#gaps(id), [before, version] as const]
    const [[from] = [''], [, to] = ['', ''], ...rest] = gaps
    const kept = gaps.length > maxGaps ? [[from, to], ...rest] : gaps
    this.#sql.setGaps.run(JSON.stringify(kept), id)
  }

  /** Restarts the logs that refer to a damaged object. */
  quarantine(scope: number, namespace: string, name: string, version: string, body: number): void {
    for (const [id, at] of this.#sql.damaged.all(scope, namespace, name, version, body)) {
      this.restart({ id: Number(id), scope }, String(at))
    }
  }

  /** The tables may have changed: drops its cached reads. */
  forget(): void {
    this.#logs.clear()
  }

  #log(of: LoggedCollection): EventLog {
    const known = this.#logs.get(of.id)
    if (known) return known
    const [first = 1, next = 1, text = '[]', rows = 0, sum = 0] = this.#sql.find.get(of.id) ?? []
    const numbered = { first: Number(first), next: Number(next) }
    const tail = tailIn(text)
    // Events may be missing if a page is damaged.
    const isWhole = Number(rows) + tail.length === countOf(numbered)
    if (!isWhole) this.restart(of, of.version)
    const bytes = tail.reduce((total, event) => total + Number(event[sizeAt]), Number(sum))
    const log = isWhole ? { ...numbered, bytes, tail } : { first: 1, next: 1, bytes: 0, tail: [] }
    const due = Math.max(countOf(log), minEvents) + slack
    const found: EventLog = { ...log, due }
    this.#logs.set(of.id, found)
    return found
  }

  #gaps(id: number): readonly VersionGap[] {
    return gapsIn(this.#sql.gaps.get(id)?.[0])
  }

  #release(scope: number, row: Row): void {
    const body = bodyReference(row)
    this.#objects.releaseEvent(scope, body)
    const [previous, size] = row.slice(4)
    if (previous === null) return
    this.#objects.releaseEvent(scope, { ...body, id: Number(previous), size: Number(size) })
  }
}

const countOf = ({ first, next }: Pick<EventLog, 'first' | 'next'>): number => next - first

const isDue = (log: EventLog, oldestAt: number, at: number): boolean =>
  countOf(log) > maxEvents - slack ||
  log.bytes > maxEventBytes - maxEventBytes / 8 ||
  (countOf(log) > minEvents && oldestAt < at - freshEventMs)

/** Parses `collection.ring_gaps`. */
export const gapsIn = (text: unknown): readonly VersionGap[] =>
  JSON.parse(String(text)) as readonly VersionGap[]

/** Parses `collection.ring_tail`; empty where that is damaged. */
function tailIn(text: unknown): EventColumns[] {
  try {
    const tail: unknown = JSON.parse(String(text))
    return Array.isArray(tail) ? (tail as EventColumns[]) : []
  } catch {
    return []
  }
}
