import type { Operation } from './messages.ts'

/**
 * Whether a commit waits for a sync. Every commit outlives the process. A power cut loses commits
 * that are not synced. Those may be changes of the last seconds, as an API server sends them again;
 * but no deleted object may return, and no list may differ from the one that was sent. Staged
 * objects are synced with the commit of their list; anything without such a commit is synced within
 * five seconds (`LateSync`).
 */
export function outlivesPowerCut(operation: Operation): boolean {
  switch (operation.kind) {
    case 'apply':
      return operation.types.includes('DELETED')
    case 'put':
      return operation.restored
    case 'commit-list':
    case 'forget':
    case 'quarantine':
    case 'invalidate':
    case 'count-day':
    case 'forget-identity':
    case 'trial':
    case 'evict':
      return true
    case 'stage':
    case 'discard':
    case 'document':
    case 'mark-used':
    case 'mark-scope':
      return false
  }
}
