import type { DatabaseSync } from 'node:sqlite'

/**
 * The usual mode overwrites deleted content only where that writes no additional page. ON writes
 * twice the bytes that are deleted, which wears memory cards.
 */
export const usualDeletion = 'PRAGMA secure_delete = FAST'

/** Overwrites the content that `act` deletes, also on pages that become free. */
export function secureDelete<T>(db: DatabaseSync, act: () => T): T {
  db.exec('PRAGMA secure_delete = ON')
  try {
    return act()
  } finally {
    db.exec(usualDeletion)
  }
}
