/** group-version-kind: the schema that an object names. The core group is the empty string. */
export interface GVK {
  readonly group: string
  readonly version: string
  readonly kind: string
}

/**
 * group-version-resource: the path of a resource in the API. The core group is the empty string.
 */
export interface GVR {
  readonly group: string
  readonly version: string
  readonly resource: string
}

export const includes = (all: readonly GVR[], { group, version, resource }: GVR): boolean =>
  all.some((each) => each.resource === resource && each.group === group && each.version === version)

/** `v1`, `apps/v1`: the `apiVersion` of objects. */
export const apiVersionOf = ({ group, version }: { group: string; version: string }): string =>
  group === '' ? version : `${group}/${version}`

/** The reverse of `apiVersionOf`. */
export function parseApiVersion(apiVersion: string): { group: string; version: string } {
  const slash = apiVersion.indexOf('/')
  return slash < 0
    ? { group: '', version: apiVersion }
    : { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) }
}

/** `pods`, `deployments.apps`: a resource in messages and in `details.kind`. */
export const qualifiedResource = ({
  group,
  resource,
}: {
  group: string
  resource: string
}): string => (group === '' ? resource : `${resource}.${group}`)
