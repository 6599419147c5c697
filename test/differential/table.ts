import type { RequestCase } from './request-case.ts'
import { discovery } from './cases/discovery.ts'
import { errors, unauthorized, unauthenticated } from './cases/errors.ts'
import { messages } from './cases/messages.ts'
import { gets, lists } from './cases/reads.ts'
import { targets } from './cases/targets.ts'
import { upgrades } from './cases/upgrades.ts'
import { watches } from './cases/watches.ts'
import { writes } from './cases/writes.ts'

/** Requests of one subject. */
export interface Subject {
  readonly name: string
  readonly cases: readonly RequestCase[]
  /** Reads change nothing; each client makes the others in a namespace of its own. */
  readonly kind: 'reads' | 'watches' | 'writes'
  /** How many run at a time. */
  readonly concurrency: number
}

export const table: readonly Subject[] = [
  { name: 'discovery and documents', cases: discovery, kind: 'reads', concurrency: 4 },
  { name: 'gets', cases: gets, kind: 'reads', concurrency: 4 },
  { name: 'lists', cases: lists, kind: 'reads', concurrency: 6 },
  { name: 'watches', cases: watches, kind: 'watches', concurrency: 8 },
  { name: 'writes', cases: writes, kind: 'writes', concurrency: 1 },
  { name: 'errors', cases: errors, kind: 'writes', concurrency: 4 },
  { name: 'callers nobody knows', cases: unauthenticated, kind: 'writes', concurrency: 4 },
  { name: 'callers who may do little', cases: unauthorized, kind: 'writes', concurrency: 4 },
  { name: 'targets and methods', cases: targets, kind: 'writes', concurrency: 4 },
  { name: 'messages', cases: messages, kind: 'writes', concurrency: 4 },
  { name: 'upgrades', cases: upgrades, kind: 'writes', concurrency: 4 },
]
