import type { DatabaseSync } from 'node:sqlite'
import { Heads } from './heads.ts'
import { Members } from './members.ts'
import type { Objects } from './objects.ts'
import { OutOfDate } from './out-of-date.ts'
import { Rings } from './rings.ts'
import { Singles } from './singles.ts'
import { Staged } from './staged.ts'

/** The writer's view of what is stored, a table in each. */
export interface Tables {
  readonly objects: Objects
  readonly rings: Rings
  readonly heads: Heads
  readonly members: Members
  readonly singles: Singles
  readonly staged: Staged
  readonly outOfDate: OutOfDate
}

export const tablesOf = (db: DatabaseSync, objects: Objects): Tables => ({
  objects,
  rings: new Rings(db, objects),
  heads: new Heads(db, objects),
  members: new Members(db, objects),
  singles: new Singles(db, objects),
  staged: new Staged(db, objects),
  outOfDate: new OutOfDate(db),
})
