import { hash } from 'node:crypto'
import { apiVersionOf } from '../api/kube/gvk.ts'
import type { JsonObject } from '../api/kube/json.ts'
import { parseAccept } from '../api/request/representation.ts'
import type { Catalog } from './catalog.ts'
import type { Kind, Subresource } from './kinds.ts'

// The discovery documents of the served resources.

/** `/api` */
export const coreVersions = (address: string): JsonObject => ({
  kind: 'APIVersions',
  versions: ['v1'],
  serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: address }],
})

/** `/apis` */
export const groupList = (catalog: Catalog) => ({
  kind: 'APIGroupList',
  apiVersion: 'v1',
  groups: [...versionsByGroup(catalog)].map(([name, versions]) => groupOf(name, versions)),
})

/** `/apis/<group>` */
export function groupDocument(catalog: Catalog, name: string): JsonObject | undefined {
  const versions = versionsByGroup(catalog).get(name)
  return versions && { kind: 'APIGroup', apiVersion: 'v1', ...groupOf(name, versions) }
}

/** `/api/v1`, `/apis/<group>/<version>` */
export function resourceList(
  catalog: Catalog,
  group: string,
  version: string,
): JsonObject | undefined {
  const kinds = kindsOf(catalog, group, version)
  if (kinds.length === 0) return undefined
  return {
    kind: 'APIResourceList',
    ...(group !== '' && { apiVersion: 'v1' }),
    groupVersion: apiVersionOf({ group, version }),
    resources: kinds.flatMap((kind) => [
      resourceOf(kind),
      ...kind.subresources.map((one) => subresourceOf(kind, one)),
    ]),
  }
}

/** `/api` and `/apis` for clients of aggregated discovery. */
export const aggregatedDiscovery = (catalog: Catalog, isCore: boolean): JsonObject => ({
  kind: 'APIGroupDiscoveryList',
  apiVersion: 'apidiscovery.k8s.io/v2',
  metadata: {},
  items: [...(isCore ? new Map([['', ['v1']]]) : versionsByGroup(catalog))].map(
    ([name, versions]) => ({
      metadata: name === '' ? {} : { name },
      versions: versions.map((one) => ({
        version: one,
        resources: kindsOf(catalog, name, one).map(aggregatedResource),
        freshness: 'Current',
      })),
    }),
  ),
})

const kindsOf = ({ kinds }: Catalog, group: string, version: string): Kind[] =>
  kinds
    .filter(({ gvr }) => gvr.group === group && gvr.version === version)
    .toSorted((a, b) => (a.gvr.resource < b.gvr.resource ? -1 : 1))

function versionsByGroup({ kinds }: Catalog): Map<string, string[]> {
  const groups = Map.groupBy(kinds, ({ gvr }) => gvr.group)
  groups.delete('')
  return new Map(
    [...groups].map(([group, of]) => [group, [...new Set(of.map(({ gvr }) => gvr.version))]]),
  )
}

function groupOf(name: string, versions: readonly string[]) {
  const all = versions.map((version) => ({ groupVersion: `${name}/${version}`, version }))
  return { name, versions: all, preferredVersion: all[0] ?? null }
}

function resourceOf(kind: Kind): JsonObject {
  return {
    name: kind.gvr.resource,
    singularName: kind.singular,
    namespaced: kind.namespaced,
    kind: kind.kind,
    verbs: kind.verbs,
    ...(kind.shortNames.length > 0 && { shortNames: kind.shortNames }),
    ...(kind.categories.length > 0 && { categories: kind.categories }),
  }
}

const subresourceOf = (kind: Kind, one: Subresource): JsonObject => ({
  name: `${kind.gvr.resource}/${one.name}`,
  singularName: '',
  namespaced: kind.namespaced,
  ...(one.group !== undefined && { group: one.group }),
  ...(one.version !== undefined && { version: one.version }),
  kind: one.kind ?? kind.kind,
  verbs: one.verbs,
})

function aggregatedResource(kind: Kind): JsonObject {
  const own = kind.custom
    ? { group: kind.gvr.group, version: kind.gvr.version }
    : { group: '', version: '' }
  return {
    resource: kind.gvr.resource,
    responseKind: { ...own, kind: kind.kind },
    scope: kind.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: kind.singular,
    verbs: kind.verbs,
    ...(kind.shortNames.length > 0 && { shortNames: kind.shortNames }),
    ...(kind.categories.length > 0 && { categories: kind.categories }),
    ...(kind.subresources.length > 0 && {
      subresources: kind.subresources.map((one) => ({
        subresource: one.name,
        responseKind: {
          group: one.group ?? own.group,
          version: one.version ?? own.version,
          kind: one.kind ?? kind.kind,
        },
        verbs: one.verbs,
      })),
    }),
  }
}

/** Whether the client prefers aggregated discovery. */
export function prefersAggregated(accept: string | undefined): boolean {
  const parameters = parseAccept(accept)[0]?.parameters
  return parameters?.get('as') === 'APIGroupDiscoveryList' && parameters.get('v') === 'v2'
}

/** The hash by which clients distinguish versions of a document. */
export const documentHash = (body: Buffer | string): string => hash('sha512', body).toUpperCase()
