import type { JsonObject } from '../api/kube/json.ts'
import type { Catalog } from './catalog.ts'
import { goJson } from '../api/codec/json/write.ts'
import { documentHash } from './discovery.ts'
import { gvkOf, type Kind } from './kinds.ts'

/** `/openapi/v2`: the names of kinds alone, as kubectl reads `/openapi/v3`. */
export const openApiV2 = (catalog: Catalog): JsonObject => ({
  swagger: '2.0',
  info: { title: 'Kubernetes', version: 'v1.35.6' },
  paths: {},
  definitions: Object.fromEntries(stored(catalog).map((kind) => [nameOf(kind), schemaOf(kind)])),
})

/** `/openapi/v3` */
export const openApiV3Index = (catalog: Catalog): JsonObject => ({
  paths: Object.fromEntries(
    [...new Set(stored(catalog).map(prefixOf))].map((prefix) => {
      const hash = documentHash(goJson(openApiV3(catalog, prefix)))
      return [prefix, { serverRelativeURL: `/openapi/v3/${prefix}?hash=${hash}` }]
    }),
  ),
})

/**
 * `/openapi/v3/<prefix>`; undefined where no kind is served under it. With as much detail as
 * kubectl needs: every kind is an object whose spec, status and other members may be anything.
 * kubectl finds each kind and its verbs (`explain` of a kind, validation in `apply`), and no field
 * is refused.
 */
export function openApiV3(catalog: Catalog, prefix: string): JsonObject | undefined {
  const kinds = stored(catalog).filter((kind) => prefixOf(kind) === prefix)
  if (kinds.length === 0) return undefined
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: 'v1.35.6' },
    paths: Object.assign({}, ...kinds.map(pathsOf)) as JsonObject,
    components: {
      schemas: Object.fromEntries(kinds.map((kind) => [nameOf(kind), schemaOf(kind)])),
    },
  }
}

const stored = ({ kinds }: Catalog): Kind[] => kinds.filter(({ verbs }) => verbs.includes('list'))

const prefixOf = ({ gvr }: Kind): string =>
  gvr.group === '' ? `api/${gvr.version}` : `apis/${gvr.group}/${gvr.version}`

/** As the server names definitions: the group reversed, then version and kind. */
function nameOf({ gvr, kind, custom }: Kind): string {
  if (custom) return `${gvr.group.split('.').toReversed().join('.')}.${gvr.version}.${kind}`
  return `io.k8s.api.${gvr.group.split('.')[0] || 'core'}.${gvr.version}.${kind}`
}

const anything: JsonObject = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }

const schemaOf = (kind: Kind): JsonObject => ({
  description: `${kind.kind} is served by an API server in memory: only its outline is described.`,
  type: 'object',
  properties: {
    apiVersion: { type: 'string', description: 'The versioned schema of this object.' },
    kind: { type: 'string', description: 'The REST resource this object represents.' },
    metadata: { ...anything, description: 'Standard metadata of an object.' },
    spec: { ...anything, description: 'What is wanted.' },
    status: { ...anything, description: 'What was observed.' },
  },
  'x-kubernetes-preserve-unknown-fields': true,
  'x-kubernetes-group-version-kind': [{ ...gvkOf(kind) }],
})

function pathsOf(kind: Kind): JsonObject {
  const scope = kind.namespaced ? '/namespaces/{namespace}' : ''
  const collection = `/${prefixOf(kind)}${scope}/${kind.gvr.resource}`
  const operation = (action: string): JsonObject => ({
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': { ...gvkOf(kind) },
    parameters,
    responses: { '200': { description: 'OK' } },
  })
  return {
    [collection]: { get: operation('list'), post: operation('post') },
    [`${collection}/{name}`]: {
      get: operation('get'),
      put: operation('put'),
      patch: operation('patch'),
      delete: operation('delete'),
    },
  }
}

const parameters = ['dryRun', 'fieldManager', 'fieldValidation'].map((name) => ({
  name,
  in: 'query',
  schema: { type: 'string', uniqueItems: true },
}))
