declare const brand: unique symbol

/**
 * A resource version issued by an API server; the hub never creates one. Not empty, and not "0",
 * which means "any" in requests.
 */
export type ResourceVersion = string & { readonly [brand]: 'ResourceVersion' }

/**
 * `undefined` for a text that no server issues: "", "0", or anything but a decimal number
 * (apimachinery pkg/util/resourceversion).
 */
export function resourceVersion(text: string | undefined): ResourceVersion | undefined {
  return text !== undefined && /^[1-9][0-9]*$/.test(text) ? (text as ResourceVersion) : undefined
}

/** Whether both are versions and `a` is newer. */
export function isNewer(a: string | undefined, b: string | undefined): boolean {
  if (a === undefined || b === undefined || ordered(a, b) <= 0) return false
  return resourceVersion(a) !== undefined && resourceVersion(b) !== undefined
}

/** The newest of those that are versions; `undefined`: none is. */
export function newestVersion(texts: readonly (string | undefined)[]): ResourceVersion | undefined {
  return texts
    .flatMap((text) => resourceVersion(text) ?? [])
    .toSorted(compareVersions)
    .at(-1)
}

/** Negative, zero or positive if `a` is older than, equal to, or newer than `b`. */
export const compareVersions = (a: ResourceVersion, b: ResourceVersion): number => ordered(a, b)

/** Without leading zeros the longer number is larger. */
function ordered(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length
  return a < b ? -1 : a > b ? 1 : 0
}
