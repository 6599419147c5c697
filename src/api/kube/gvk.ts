/** group-version-kind: the schema an object says it has. The core group is the empty string. */
export interface GVK {
  readonly group: string
  readonly version: string
  readonly kind: string
}

/** group-version-resource: the place in the URL space an object is found at. */
export interface GVR {
  readonly group: string
  readonly version: string
  readonly resource: string
}

/** `v1`, `apps/v1`: how objects write group and version. */
export const apiVersionOf = ({ group, version }: { group: string; version: string }): string =>
  group === '' ? version : `${group}/${version}`

/** The reverse of `apiVersionOf`. */
export function parseApiVersion(apiVersion: string): { group: string; version: string } {
  const slash = apiVersion.indexOf('/')
  return slash < 0
    ? { group: '', version: apiVersion }
    : { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) }
}

/** `pods`, `deployments.apps`: how messages and `details.kind` write a resource. */
export const qualifiedResource = ({
  group,
  resource,
}: {
  group: string
  resource: string
}): string => (group === '' ? resource : `${resource}.${group}`)
