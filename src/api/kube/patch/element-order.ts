import { isObject, type Json } from '../json.ts'

/**
 * The identity of an element of a merging list: its merge key, or the element itself if the key is
 * ''.
 */
export const identityOf = (item: Json | undefined, key: string): Json | undefined => {
  if (key === '') return item
  return isObject(item) && Object.hasOwn(item, key) ? item[key] : undefined
}

/** The first position of each identity. */
export function positions(items: readonly Json[], key: string): Map<Json | undefined, number> {
  const found = new Map<Json | undefined, number>()
  for (const [at, item] of items.entries()) {
    const identity = identityOf(item, key)
    if (!found.has(identity)) found.set(identity, at)
  }
  return found
}

/**
 * Orders a merged list: elements in `wanted` have its order, the others the order of `before`, and
 * one of the others precedes a wanted one only if it did so in `before`. New elements therefore
 * come first.
 */
export function inOrder(
  items: readonly Json[],
  wanted: readonly Json[],
  before: readonly Json[],
  key: string,
): readonly Json[] {
  const wantedAt = positions(wanted, key)
  const beforeAt = positions(before, key)
  const at = (order: ReadonlyMap<Json | undefined, number>, item: Json | undefined): number =>
    order.get(identityOf(item, key)) ?? Number.POSITIVE_INFINITY
  const byPlace = (order: ReadonlyMap<Json | undefined, number>) => (a: Json, b: Json) =>
    at(order, a) < at(order, b) ? -1 : at(order, a) > at(order, b) ? 1 : 0
  const isWanted = (item: Json): boolean => wantedAt.has(identityOf(item, key))
  const first = items.filter(isWanted).toSorted(byPlace(wantedAt))
  const others = items.filter((item) => !isWanted(item)).toSorted(byPlace(beforeAt))

  const isBefore = (other: Json | undefined, place: number): other is Json =>
    other !== undefined && Number.isFinite(place) && at(beforeAt, other) < place

  const all: Json[] = []
  let next = 0
  for (const item of first) {
    const place = at(beforeAt, item)
    for (let other = others[next]; isBefore(other, place); other = others[++next]) all.push(other)
    all.push(item)
  }
  return [...all, ...others.slice(next)]
}
