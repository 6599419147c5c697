import { showing, type Filter, type FilterDefinition } from '../src/hub/filter/filter.ts'

/**
 * Opens node ports only in the pools that a service names: withholds from kube-proxy a service of
 * type NodePort or LoadBalancer whose annotation `nodeport.openyurt.io/listen` excludes this node's
 * pool.
 */
export const nodeportisolation: FilterDefinition<'pool'> = {
  name: 'nodeportisolation',
  rules: [{ components: ['kube-proxy'], group: '', resources: ['services'], verbs: showing }],
  // One service too many does less harm than one too few.
  onError: 'pass',
  needs: ['pool'],
  awaits: ['pool'],
  // A node without a pool is not isolated.
  create: ({ pool }) => (pool ? listeningIn(pool.name) : undefined),
}

const listeningIn =
  (pool: string): Filter =>
  (service) => {
    if (service.kind !== 'Service' || !service.mentions('nodeport.openyurt.io')) return 'leave'
    const listen = service.annotation('nodeport.openyurt.io/listen')
    if (listen === undefined) return 'leave'
    const type = service.value(['spec', 'type'])
    if (type !== 'NodePort' && type !== 'LoadBalancer') return 'leave'
    return listens(listen, pool) ? 'leave' : 'withhold'
  }

/**
 * `name` listens, `-name` does not, and the first match counts; `*` is for pools that are not
 * named.
 */
function listens(listen: string, pool: string): boolean {
  const tokens = listen.split(',').map((token) => token.trim())
  const named = tokens.find((token) => token === pool || token === `-${pool}`)
  return named === undefined ? tokens.includes('*') : named === pool
}
