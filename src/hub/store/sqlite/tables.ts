import type { DatabaseSync } from 'node:sqlite'
import { CollectionRows } from './collection-rows.ts'
import { Members } from './members.ts'
import type { Objects } from './objects.ts'
import { Tombstones } from './tombstones.ts'
import { EventLogs } from './event-logs.ts'
import { ObjectRecords } from './object-records.ts'
import { Staged } from './staged.ts'

export const tablesOf = (db: DatabaseSync, objects: Objects) => ({
  objects,
  eventLogs: new EventLogs(db, objects),
  collections: new CollectionRows(db, objects),
  members: new Members(db, objects),
  records: new ObjectRecords(db, objects),
  staged: new Staged(db, objects),
  tombstones: new Tombstones(db),
})

/** The writer's access to the tables. */
export type Tables = Readonly<ReturnType<typeof tablesOf>>
