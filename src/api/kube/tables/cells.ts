import type { Json, JsonObject } from '../json.ts'
import { listAt, objectAt, optionalObjectAt, printed, textAt } from '../json-at.ts'
import { none } from './column.ts'

// Cells that several kinds share (kubernetes pkg/printers/internalversion/printers.go).

type Cell = (object: JsonObject) => Json

const longest = 3

/** The first three of `all`, and how many more there are; `empty` for none. */
export const shorten = (all: readonly string[], empty: string): string =>
  all.length === 0
    ? empty
    : all.slice(0, longest).join(',') +
      (all.length > longest ? ` + ${all.length - longest} more...` : '')

/** The number of members of the object at a path. */
export const size = (object: JsonObject, ...path: string[]): number =>
  Object.keys(objectAt(object, ...path)).length

/** Labels as `a=1,b=2`. */
export const labels =
  (...path: string[]): Cell =>
  (object) =>
    pairs(objectAt(object, ...path)).join(',') || none

const pairs = (labelled: JsonObject): string[] =>
  Object.entries(labelled)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${printed(value)}`)

/** A label selector in one line; `empty` for none, and for one without requirements. */
export const labelSelector =
  (empty: string, ...path: string[]): Cell =>
  (object) => {
    const selector = optionalObjectAt(object, ...path)
    return (selector && selectorText(selector)) || empty
  }

function selectorText(selector: JsonObject): string {
  const requirements = Object.entries(objectAt(selector, 'matchLabels')).map(
    ([key, value]): readonly [string, string] => [key, `${key}=${printed(value)}`],
  )
  for (const each of listAt(selector, 'matchExpressions')) {
    const key = textAt(each, 'key')
    const values = listAt(each, 'values').map(printed).toSorted().join(',')
    switch (textAt(each, 'operator')) {
      case 'In':
        requirements.push([key, `${key} in (${values})`])
        break
      case 'NotIn':
        requirements.push([key, `${key} notin (${values})`])
        break
      case 'Exists':
        requirements.push([key, key])
        break
      case 'DoesNotExist':
        requirements.push([key, `!${key}`])
        break
      default:
        return '<error>'
    }
  }
  return requirements
    .toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([, text]) => text)
    .join(',')
}

/** A member of each container of a pod template. */
export const ofContainers =
  (member: 'name' | 'image', ...path: string[]): Cell =>
  (object) =>
    listAt(object, ...path, 'spec', 'containers')
      .map((container) => textAt(container, member))
      .join(',')

/** The addresses of a load balancer, each once. */
export function loadBalancer(object: JsonObject): string {
  const all = listAt(object, 'status', 'loadBalancer', 'ingress').map(
    (each) => textAt(each, 'ip') || textAt(each, 'hostname'),
  )
  return [...new Set(all.filter((each) => each !== ''))].toSorted().join(',')
}
