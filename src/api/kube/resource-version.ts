declare const brand: unique symbol

/**
 * A version that a cloud issued; never made up here. Not empty, and not "0", which means "any" in
 * requests.
 */
export type ResourceVersion = string & { readonly [brand]: 'ResourceVersion' }

/**
 * `undefined` for what no server issues: "", "0", or anything that is not a decimal number
 * (apimachinery pkg/util/resourceversion).
 */
export function resourceVersion(text: string | undefined): ResourceVersion | undefined {
  return text !== undefined && /^[1-9][0-9]*$/.test(text) ? (text as ResourceVersion) : undefined
}

/** Whether both are versions and `a` is the newer. */
export function isNewer(a: string | undefined, b: string | undefined): boolean {
  const [x, y] = [resourceVersion(a), resourceVersion(b)]
  return x !== undefined && y !== undefined && compareVersions(x, y) > 0
}

/**
 * Below, at or above zero as `a` is older than, as old as, or newer than `b`: longer is larger, as
 * there are no leading zeros.
 */
export function compareVersions(a: ResourceVersion, b: ResourceVersion): number {
  if (a.length !== b.length) return a.length - b.length
  return a < b ? -1 : a > b ? 1 : 0
}
