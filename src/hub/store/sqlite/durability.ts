import type { Operation } from './messages.ts'

/**
 * Whether a commit has to wait until the disk has it. What is committed outlives this process in
 * any case; a power cut takes what the disk has not: the changes of the last seconds may go so,
 * which the cloud tells again, but nobody is to come back to life and no list is to be another than
 * was told. What is only staged is synced by the commit that makes it part of a list, as everything
 * before it; what no such commit follows is synced within some five seconds (`LateSync`).
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
