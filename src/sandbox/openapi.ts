import type { JsonObject } from '../api/kube/json.ts'
import type { Catalog } from './catalog.ts'
import { goJson } from '../api/codec/json/write.ts'
import { documentHash } from './discovery.ts'
import { gvkOf, type Kind } from './kinds.ts'

const info = { title: 'Kubernetes', version: 'v1.35.6' }

/** `/openapi/v2`, in place of which kubectl reads `/openapi/v3`. */
export const openApiV2: JsonObject = { swagger: '2.0', info, paths: {} }

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
 * `/openapi/v3/<prefix>`; undefined where no kind is served under it. Without schemas: kubectl
 * finds the verbs of each kind there, and that the server validates what it applies.
 */
export function openApiV3(catalog: Catalog, prefix: string): JsonObject | undefined {
  const kinds = stored(catalog).filter((kind) => prefixOf(kind) === prefix)
  if (kinds.length === 0) return undefined
  const paths = Object.assign({}, ...kinds.map(pathsOf)) as JsonObject
  return { openapi: '3.0.0', info, paths, components: { schemas: {} } }
}

const stored = ({ kinds }: Catalog): Kind[] => kinds.filter(({ verbs }) => verbs.includes('list'))

const prefixOf = ({ gvr }: Kind): string =>
  gvr.group === '' ? `api/${gvr.version}` : `apis/${gvr.group}/${gvr.version}`

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
