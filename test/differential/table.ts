import type { Asking } from './asking.ts'
import { discovery } from './cases/discovery.ts'
import { errors, poor, strangers } from './cases/errors.ts'
import { messages } from './cases/messages.ts'
import { gets, lists } from './cases/reads.ts'
import { targets } from './cases/targets.ts'
import { upgrades } from './cases/upgrades.ts'
import { watches } from './cases/watches.ts'
import { writes } from './cases/writes.ts'

/** Requests of one subject. */
export interface Subject {
  readonly name: string
  readonly askings: readonly Asking[]
  /** Reads leave everything as it was; others are made by each door in a namespace of its own. */
  readonly kind: 'reads' | 'watches' | 'writes'
  /** How many are under way at a time. */
  readonly abreast: number
}

export const table: readonly Subject[] = [
  { name: 'discovery and documents', askings: discovery, kind: 'reads', abreast: 4 },
  { name: 'gets', askings: gets, kind: 'reads', abreast: 4 },
  { name: 'lists', askings: lists, kind: 'reads', abreast: 6 },
  { name: 'watches', askings: watches, kind: 'watches', abreast: 8 },
  { name: 'writes', askings: writes, kind: 'writes', abreast: 1 },
  { name: 'errors', askings: errors, kind: 'writes', abreast: 4 },
  { name: 'callers nobody knows', askings: strangers, kind: 'writes', abreast: 4 },
  { name: 'callers who may do little', askings: poor, kind: 'writes', abreast: 4 },
  { name: 'targets and methods', askings: targets, kind: 'writes', abreast: 4 },
  { name: 'messages', askings: messages, kind: 'writes', abreast: 4 },
  { name: 'upgrades', askings: upgrades, kind: 'writes', abreast: 4 },
]
