import type { DatabaseSync } from 'node:sqlite'

/**
 * One script a version, oldest first; `user_version` counts those that have run. A script that was
 * ever released is not edited.
 *
 * `body` holds the bytes of one version of one object, once for everyone in a scope who refers to
 * it: members of collections, single records, and what is staged, each with all that is known of
 * the object, so that an event writes few pages. Nobody counts those who refer: they are found by
 * name. A row of `body` that nobody refers to is used again, but not while a list that is being
 * read may come to it. `forgotten` names objects that members stand for and of which the cloud has
 * said since that there are none; nothing in it is in `single`. Where `below` names a version, only
 * states before it are out of date: a selector's watch or list showed the object no longer, which
 * may only have ceased to match. `audience` counts the days for which a token was not used, up to
 * the day in `aged`; as scopes go with it, their ids are given once only.
 *
 * `event` is the ring of each collection: what its watches said, in their order, with references to
 * the body that each brought and to the one that was held before it, whose uid is NULL where it is
 * the same. A collection is told whole from `ring_from` on, but not from within one of its
 * `ring_gaps` (see `Rings`); its events are numbered from `ring_first` up to before `ring_next`,
 * each number once. The newest are in `ring_tail`, whose row each event writes anyway, until there
 * are enough for a page of their own; `told` has all.
 *
 * `document` has each document once in each representation: `url` is its path, `accept` the media
 * type of the answer.
 *
 * `scope.passing` marks what only a person at a console ever asked for: it goes first where room is
 * needed (see `Eviction`).
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

/** The file is not ours. */
export class UnknownSchema extends Error {
  readonly code = 'UNKNOWN_SCHEMA'
}

/** The file was written by a later release: what it holds is whole, and of use to that release. */
export class LaterSchema extends Error {
  readonly code = 'LATER_SCHEMA'
  constructor(found: number) {
    super(
      `it has schema version ${found}, and this release knows versions up to ${migrations.length}`,
    )
  }
}

/** Of the tables of `schema`, a database that is attached or the connection's own. */
export const versionOf = (db: DatabaseSync, schema = 'main'): number =>
  Number(db.prepare(`PRAGMA ${schema}.user_version`).get()?.['user_version'])

/** Whether an earlier release has left it so. */
export const isOlder = (db: DatabaseSync): boolean => {
  const found = versionOf(db)
  return found > 0 && found < migrations.length
}

/** Whether a later release has left it so: what is in it cannot be understood. */
export const isLater = (db: DatabaseSync): boolean => versionOf(db) > migrations.length

/** Brings the tables to the newest version, each step whole or not at all. */
export function migrate(db: DatabaseSync): void {
  const found = versionOf(db)
  if (!(found >= 0)) throw new UnknownSchema(`schema version ${found}`)
  if (found > migrations.length) throw new LaterSchema(found)
  migrations.slice(found).forEach((script, index) => {
    db.exec(`BEGIN IMMEDIATE; ${script}; PRAGMA user_version = ${found + index + 1}; COMMIT`)
  })
}
