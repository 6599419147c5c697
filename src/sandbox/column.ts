import { now } from '../base/clock.ts'
import type { Json } from '../api/kube/json.ts'
import { optionalTextAt, textAt } from '../api/kube/json-at.ts'
import type { KubeObject } from './object.ts'

/** One column of a Table, and how a row gets its cell. */
export interface Column {
  readonly name: string
  readonly type: 'string'
  readonly format: string
  readonly description: string
  /** 0: always shown; 1: added by `kubectl get -o wide`. */
  readonly priority: number
  readonly cell: (object: KubeObject) => Json
}

export const none = '<none>'

export const column = (
  name: string,
  cell: Column['cell'],
  priority = 0,
  description = '',
): Column => ({
  name,
  type: 'string',
  format: name === 'Name' ? 'name' : '',
  description,
  priority,
  cell,
})

/** Reads the text at a path; `none` where there is none. */
export const text =
  (...path: string[]) =>
  (object: KubeObject): Json =>
    textAt(object, ...path) || none

export const nameColumn = column(
  'Name',
  // A bookmark has none.
  (object) => textAt(object, 'metadata', 'name'),
  0,
  'Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names',
)

export const ageColumn = column(
  'Age',
  (object) => ageOf(optionalTextAt(object, 'metadata', 'creationTimestamp')),
  0,
  'CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata',
)

/** How long ago a time was, as kubectl writes it (apimachinery pkg/util/duration). */
export function ageOf(time: string | undefined): string {
  const then = time === undefined ? NaN : Date.parse(time)
  if (Number.isNaN(then)) return '<unknown>'
  const seconds = Math.floor((now() - then) / 1000)
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  if (seconds < 120) return `${seconds}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 10) return joined(minutes, 'm', seconds % 60, 's')
  if (minutes < 180) return `${minutes}m`
  const hours = Math.floor(minutes / 60)
  if (hours < 8) return joined(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  const days = Math.floor(hours / 24)
  if (hours < 192) return joined(days, 'd', hours % 24, 'h')
  if (days < 730) return `${days}d`
  return joined(Math.floor(days / 365), 'y', days % 365, 'd')
}

const joined = (large: number, unit: string, small: number, smallUnit: string): string =>
  small === 0 ? `${large}${unit}` : `${large}${unit}${small}${smallUnit}`
