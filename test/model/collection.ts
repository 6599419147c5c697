import type { GVR } from '../../src/api/kube/gvk.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { nodeName } from '../kit/cloud.ts'

/** Among them those whose collections a hub may share between its callers. */
export const resources = {
  configmaps: { group: '', version: 'v1', resource: 'configmaps' },
  pods: { group: '', version: 'v1', resource: 'pods' },
  services: { group: '', version: 'v1', resource: 'services' },
  endpointslices: { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' },
} as const satisfies Record<string, GVR>

export type Resource = keyof typeof resources

export const namespaces = ['red', 'blue'] as const
export const names = ['a', 'b', 'c'] as const
/** Values of the label in selectors; '' is none. */
export const apps = ['x', 'y', ''] as const

/** What a list or watch of the model covers. */
export interface Collection {
  readonly resource: Resource
  readonly namespace?: string
  readonly label?: 'app=x' | 'app!=x' | 'app'
  readonly field?: 'metadata.name=a' | `spec.nodeName=${typeof nodeName}`
}

/** An object of the model: its identity and its state. */
export interface ModelObject {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly version: number
  readonly app: string
  /** Another one with each write. */
  readonly mark: string
}

/** Pods called so are the node's own; the others are another's. */
const ofTheNode = new Set(['a', 'c'])

export const bodyOf = (
  resource: Resource,
  { namespace, name, app, mark }: Pick<ModelObject, 'namespace' | 'name' | 'app' | 'mark'>,
): JsonObject => ({
  metadata: {
    name,
    namespace,
    ...(app !== '' && { labels: { app } }),
    annotations: { mark },
  },
  ...specs[resource](name),
})

const specs: Record<Resource, (name: string) => JsonObject> = {
  configmaps: () => ({ data: { key: 'value' } }),
  pods: (name) => ({
    spec: {
      nodeName: ofTheNode.has(name) ? nodeName : 'edge-2',
      containers: [{ name: 'main', image: 'registry.example/main:1' }],
    },
  }),
  services: () => ({ spec: { ports: [{ name: 'http', port: 80 }] } }),
  endpointslices: () => ({ addressType: 'IPv4', endpoints: [] }),
}

/** What the model keeps of an object as an API server shows it. */
export function modelObject(object: JsonObject): ModelObject {
  const { metadata = {} } = object as { metadata?: Record<string, unknown> }
  const text = (value: unknown): string => (typeof value === 'string' ? value : '')
  const inside = (field: string, key: string): string =>
    text((metadata[field] as Record<string, unknown> | undefined)?.[key])
  return {
    namespace: text(metadata['namespace']),
    name: text(metadata['name']),
    uid: text(metadata['uid']),
    version: Number(text(metadata['resourceVersion'])),
    app: inside('labels', 'app'),
    mark: inside('annotations', 'mark'),
  }
}

export const keyOf = ({ namespace, name }: Pick<ModelObject, 'namespace' | 'name'>): string =>
  `${namespace}/${name}`

/** A text that identifies an object and its state. */
export const shown = ({ namespace, name, uid, version, app, mark }: ModelObject): string =>
  `${namespace}/${name}@${version} app=${app} mark=${mark} ${uid.slice(0, 8)}`

/** Whether name and namespace alone decide membership in the collection. */
export const isWhole = ({ label, field }: Collection): boolean =>
  label === undefined && (field === undefined || field.startsWith('metadata.name'))

/** Whether objects of this place could be in the collection. */
export function covers(
  { namespace, field }: Collection,
  of: Pick<ModelObject, 'namespace' | 'name'>,
): boolean {
  if (namespace !== undefined && namespace !== of.namespace) return false
  return field !== 'metadata.name=a' || of.name === 'a'
}

export function selects(collection: Collection, object: ModelObject): boolean {
  if (!covers(collection, object)) return false
  if (collection.field?.startsWith('spec.nodeName') && !ofTheNode.has(object.name)) return false
  switch (collection.label) {
    case 'app=x':
      return object.app === 'x'
    case 'app!=x':
      return object.app !== 'x'
    case 'app':
      return object.app !== ''
    default:
      return true
  }
}

const prefixOf = ({ group, version }: GVR): string =>
  group === '' ? `/api/${version}` : `/apis/${group}/${version}`

const insideOf = (resource: Resource, namespace?: string): string =>
  `${prefixOf(resources[resource])}${namespace === undefined ? '' : `/namespaces/${namespace}`}/${resource}`

export const pathOfObject = (
  resource: Resource,
  { namespace, name }: Pick<ModelObject, 'namespace' | 'name'>,
): string => `${insideOf(resource, namespace)}/${name}`

/** The URL of a list or watch with these parameters besides its selectors. */
export function pathOf(collection: Collection, parameters: Record<string, string> = {}): string {
  const { resource, namespace, label, field } = collection
  const query = new URLSearchParams({
    ...(label !== undefined && { labelSelector: label }),
    ...(field !== undefined && { fieldSelector: field }),
    ...parameters,
  })
  const path = insideOf(resource, namespace)
  return query.size === 0 ? path : `${path}?${query}`
}
