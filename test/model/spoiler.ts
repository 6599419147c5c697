import type { JsonObject } from '../../src/kube/json.ts'
import type { Seen } from '../kit/client-watch.ts'

/** Stands between the hub and its clients, to see whether what it does is found. */
export interface Spoiler {
  list?(list: JsonObject): JsonObject
  get?(answer: { status: number; object: JsonObject }): { status: number; object: JsonObject }
  /** `undefined`: the event is swallowed. */
  event?(seen: Seen): Seen | undefined
}
