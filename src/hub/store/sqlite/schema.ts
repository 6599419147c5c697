import type { DatabaseSync } from 'node:sqlite'

/**
 * One migration a version, oldest first; `user_version` counts the applied ones. A released
 * migration is never edited.
 *
 * `body` holds the bytes of one version of one object, once for all rows of its scope that refer to
 * it: members of collections, records of single objects (`single`) and staged objects. Each of
 * these rows repeats the object's metadata, so that an event writes few pages. References are not
 * counted: they are found by name. An unreferenced row of `body` is used again, unless a list that
 * is being read may need it. `forgotten` has the tombstones: objects of which an API server has
 * answered, later than the members say, that they do not exist; no object in it has a record. Where
 * `below` has a version, only states before it are out of date: a watch or list with a selector has
 * shown the object no longer, which may only have ceased to match. `audience` counts for each
 * identity the days without use, up to the day in `aged`; as scopes are deleted with it, their ids
 * are used only once.
 *
 * `event` is the persisted event log of each collection: the events of its watches in order, with
 * references to the body of each and to the previous one, whose uid is NULL where it is the same.
 * The events are complete from `ring_from` on, except within one of `ring_gaps` (see `EventLogs`).
 * They are numbered from `ring_first` up to but excluding `ring_next`, each number once. The newest
 * are in `ring_tail`, whose row each event writes anyway, until they fill a page of their own; the
 * view `told` has all.
 *
 * `document` has each document once in each representation: `url` is its path, `accept` the media
 * type of the answer.
 *
 * `scope.passing` marks a scope that was recorded for kubectl only: it is evicted first (see
 * `Eviction`).
 */
const migrations = [
  `
  CREATE TABLE scope (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    identity TEXT NOT NULL, form TEXT NOT NULL,
    api_group TEXT NOT NULL, api_version TEXT NOT NULL, resource TEXT NOT NULL,
    UNIQUE (identity, form, api_group, api_version, resource)
  ) STRICT;

  CREATE TABLE collection (
    id INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL,
    namespace TEXT NOT NULL, label_selector TEXT NOT NULL, field_selector TEXT NOT NULL,
    kind_group TEXT NOT NULL, kind_version TEXT NOT NULL, kind TEXT NOT NULL,
    version TEXT NOT NULL,
    confirmed_at INTEGER NOT NULL,
    whole INTEGER NOT NULL,
    holes INTEGER NOT NULL,
    extra TEXT NOT NULL,
    UNIQUE (scope, namespace, label_selector, field_selector)
  ) STRICT;

  CREATE TABLE body (
    id INTEGER PRIMARY KEY,
    checksum INTEGER NOT NULL,
    bytes BLOB NOT NULL
  ) STRICT;

  CREATE TABLE member (
    collection INTEGER NOT NULL,
    namespace TEXT NOT NULL, name TEXT NOT NULL,
    body INTEGER NOT NULL,
    uid TEXT NOT NULL, version TEXT NOT NULL, size INTEGER NOT NULL,
    PRIMARY KEY (collection, namespace, name)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE single (
    scope INTEGER NOT NULL,
    namespace TEXT NOT NULL, name TEXT NOT NULL,
    body INTEGER NOT NULL,
    uid TEXT NOT NULL, version TEXT NOT NULL, size INTEGER NOT NULL,
    kind_group TEXT NOT NULL, kind_version TEXT NOT NULL, kind TEXT NOT NULL,
    PRIMARY KEY (scope, namespace, name)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE forgotten (
    scope INTEGER NOT NULL,
    namespace TEXT NOT NULL, name TEXT NOT NULL,
    PRIMARY KEY (scope, namespace, name)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE staged (
    scope INTEGER NOT NULL,
    namespace TEXT NOT NULL, name TEXT NOT NULL,
    replacement INTEGER NOT NULL,
    body INTEGER NOT NULL,
    uid TEXT NOT NULL, version TEXT NOT NULL, size INTEGER NOT NULL,
    PRIMARY KEY (scope, namespace, name, replacement)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE document (
    identity TEXT NOT NULL, url TEXT NOT NULL, accept TEXT NOT NULL,
    content_type TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (identity, url, accept)
  ) STRICT;

  CREATE TABLE audience (identity TEXT PRIMARY KEY, idle_days INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE aged (id INTEGER PRIMARY KEY, day INTEGER NOT NULL) STRICT;
  CREATE TABLE seal (fingerprint TEXT NOT NULL) STRICT;
  `,
  `
  CREATE TABLE event (
    collection INTEGER NOT NULL, seq INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    type INTEGER NOT NULL, told_at INTEGER NOT NULL,
    namespace TEXT NOT NULL, name TEXT NOT NULL,
    body INTEGER NOT NULL, uid TEXT NOT NULL, version TEXT NOT NULL, size INTEGER NOT NULL,
    previous_body INTEGER, previous_uid TEXT, previous_version TEXT, previous_size INTEGER,
    PRIMARY KEY (collection, seq)
  ) STRICT, WITHOUT ROWID;

  ALTER TABLE collection ADD COLUMN ring_from TEXT NOT NULL DEFAULT '';
  ALTER TABLE collection ADD COLUMN ring_gaps TEXT NOT NULL DEFAULT '[]';
  ALTER TABLE collection ADD COLUMN ring_first INTEGER NOT NULL DEFAULT 1;
  ALTER TABLE collection ADD COLUMN ring_next INTEGER NOT NULL DEFAULT 1;
  ALTER TABLE collection ADD COLUMN ring_tail TEXT NOT NULL DEFAULT '[]';
  UPDATE collection SET ring_from = version;

  CREATE VIEW told AS
    SELECT collection, seq, checksum, type, told_at, namespace, name, body, uid, version, size,
      previous_body, previous_uid, previous_version, previous_size
    FROM event
    UNION ALL
    SELECT collection.id, value->>0, value->>1, value->>2, value->>3, value->>4, value->>5,
      value->>6, value->>7, value->>8, value->>9, value->>10, value->>11, value->>12, value->>13
    FROM collection, json_each(CASE WHEN json_valid(ring_tail) THEN ring_tail ELSE '[]' END);
  `,
  `
  ALTER TABLE single ADD COLUMN confirmed_at INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE document ADD COLUMN confirmed_at INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE forgotten ADD COLUMN below TEXT NOT NULL DEFAULT '';
  `,
  `
  ALTER TABLE scope ADD COLUMN passing INTEGER NOT NULL DEFAULT 0;
  `,
  `
  ALTER TABLE collection ADD COLUMN checksum INTEGER;
  `,
  `
  CREATE TABLE document_by_type (
    identity TEXT NOT NULL, url TEXT NOT NULL, accept TEXT NOT NULL,
    content_type TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    body BLOB NOT NULL,
    confirmed_at INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (identity, url, accept)
  ) STRICT;
  INSERT INTO document_by_type
    SELECT identity, substr(url, 1, instr(url || '?', '?') - 1),
      replace(replace(content_type, ' ', ''), '@v1', '.v1'),
      content_type, checksum, body, confirmed_at
    FROM document WHERE true ORDER BY confirmed_at
    ON CONFLICT DO UPDATE SET content_type = excluded.content_type, checksum = excluded.checksum,
      body = excluded.body, confirmed_at = excluded.confirmed_at;
  DROP TABLE document;
  ALTER TABLE document_by_type RENAME TO document;
  `,
]

/** The schema version that `migrate` leads to. */
export const newestSchema = migrations.length

/** The file is no database of a hub. */
export class UnknownSchema extends Error {
  readonly code = 'UNKNOWN_SCHEMA'
}

/** The file was written by a later release, which can still use it. */
export class LaterSchema extends Error {
  readonly code = 'LATER_SCHEMA'
  constructor(found: number, shown = 'it') {
    super(
      `${shown} has schema version ${found}, and this release knows versions up to ${migrations.length}`,
    )
  }
}

/** The schema version of `schema`, an attached database or the main one. */
export const versionOf = (db: DatabaseSync, schema = 'main'): number =>
  Number(db.prepare(`PRAGMA ${schema}.user_version`).get()?.['user_version'])

/** Whether an earlier release wrote it. */
export const isOlder = (db: DatabaseSync): boolean => {
  const found = versionOf(db)
  return found > 0 && found < migrations.length
}

/** Whether a later release wrote it, so that this one cannot read it. */
export const isLater = (db: DatabaseSync): boolean => versionOf(db) > migrations.length

/** Migrates to the newest version, each step in a transaction. */
export function migrate(db: DatabaseSync): void {
  const found = versionOf(db)
  if (!(found >= 0)) throw new UnknownSchema(`schema version ${found}`)
  if (found > migrations.length) throw new LaterSchema(found)
  migrations.slice(found).forEach((script, index) => {
    db.exec(`BEGIN IMMEDIATE; ${script}; PRAGMA user_version = ${found + index + 1}; COMMIT`)
  })
}
