import type { DatabaseSync } from 'node:sqlite'

/**
 * Else what is deleted is overwritten where that writes no more: on pages that are still used. ON
 * writes twice the bytes that are deleted, which memory cards pay for.
 */
export const usualDeletion = 'PRAGMA secure_delete = FAST'

/** Whatever `act` deletes is overwritten, on pages that become free as well. */
export function secureDelete<T>(db: DatabaseSync, act: () => T): T {
  db.exec('PRAGMA secure_delete = ON')
  try {
    return act()
  } finally {
    db.exec(usualDeletion)
  }
}
