import { isObject, type JsonObject } from '../../api/kube/json.ts'
import { optionalObjectAt, optionalTextAt, listAt } from '../../api/kube/json-at.ts'

/** The facts about a NodePool that rules use. */
export interface PoolFacts {
  readonly hostNetwork: boolean
  /** How many nodes are in it, if known. */
  readonly nodes?: number
  /** Labels that it gives its nodes. */
  readonly labels?: JsonObject
  /** Taints that it gives its nodes. */
  readonly taints?: readonly JsonObject[]
}

/** The Pod Security levels of a namespace, by mode. */
export interface PodSecurity {
  readonly enforce?: string
  readonly warn?: string
}

/** The facts besides the object itself. No rule draws conclusions from a missing one. */
export interface Context {
  readonly pools: ReadonlyMap<string, PoolFacts>
  readonly namespaces: ReadonlyMap<string, PodSecurity>
  /**
   * Objects seen before this one, the latest of each kind, namespace and name:
   * `kind/namespace/name`.
   */
  readonly before?: ReadonlyMap<string, JsonObject>
}

/** The key of an object among those seen before. */
export function identityOf(object: JsonObject): string | undefined {
  const name = optionalTextAt(object, 'metadata', 'name')
  const kind = optionalTextAt(object, 'kind')
  if (name === undefined || kind === undefined) return undefined
  return `${kind}/${optionalTextAt(object, 'metadata', 'namespace') ?? 'default'}/${name}`
}

/**
 * The facts from the NodePools and Namespaces among some objects. `given` overrides a NodePool of
 * that name.
 */
export function contextOf(
  objects: Iterable<JsonObject>,
  given: ReadonlyMap<string, PoolFacts> = new Map(),
): Context {
  const pools = new Map<string, PoolFacts>()
  const namespaces = new Map<string, PodSecurity>()
  for (const object of objects) {
    const name = optionalTextAt(object, 'metadata', 'name')
    if (name === undefined) continue
    if (isNodePool(object)) pools.set(name, poolFacts(object))
    else if (object['kind'] === 'Namespace') namespaces.set(name, podSecurityOf(object))
  }
  for (const [name, facts] of given) pools.set(name, { ...pools.get(name), ...facts })
  return { pools, namespaces }
}

export const isNodePool = (object: JsonObject): boolean =>
  object['kind'] === 'NodePool' &&
  optionalTextAt(object, 'apiVersion')?.startsWith('apps.openyurt.io/') === true

/** The facts from a NodePool of any version. */
function poolFacts(pool: JsonObject): PoolFacts {
  const spec = optionalObjectAt(pool, 'spec')
  const status = optionalObjectAt(pool, 'status')
  const counts = [status?.['readyNodeNum'], status?.['unreadyNodeNum']]
  const counted = counts.filter((count) => typeof count === 'number')
  const labels = optionalObjectAt(spec, 'labels')
  return {
    hostNetwork: spec?.['hostNetwork'] === true,
    ...(counted.length > 0 && { nodes: counted.reduce((sum, count) => sum + count, 0) }),
    ...(labels && { labels }),
    taints: listAt(spec, 'taints').filter(isObject),
  }
}

const podSecurity = 'pod-security.kubernetes.io/'

function podSecurityOf(namespace: JsonObject): PodSecurity {
  const labels = optionalObjectAt(namespace, 'metadata', 'labels')
  const [enforce, warn] = ['enforce', 'warn'].map((mode) =>
    optionalTextAt(labels, `${podSecurity}${mode}`),
  )
  return { ...(enforce !== undefined && { enforce }), ...(warn !== undefined && { warn }) }
}
