import type { Json } from './json.ts'
import { listAt, textAt } from './json-at.ts'

/** The condition of a type in the status of an object; `undefined`: there is none. */
export const conditionOf = (object: Json | undefined, type: string): Json | undefined =>
  listAt(object, 'status', 'conditions').find((each) => textAt(each, 'type') === type)

/** Whether the condition of a type is true. */
export const isConditionTrue = (object: Json | undefined, type: string): boolean =>
  textAt(conditionOf(object, type), 'status') === 'True'
