import { showing, type Filter, type FilterDefinition } from '../src/hub/filter/filter.ts'

/**
 * Keeps node ports open only in the pools that a service names: kube-proxy does not see a service
 * of type NodePort or LoadBalancer whose annotation `nodeport.openyurt.io/listen` leaves out this
 * node's pool.
 */
export const nodeportisolation: FilterDefinition<'pool'> = {
  name: 'nodeportisolation',
  rules: [{ components: ['kube-proxy'], group: '', resources: ['services'], verbs: showing }],
  // A service too many does less harm than one that is missing.
  onError: 'pass',
  needs: ['pool'],
  awaits: ['pool'],
  // A node in no pool is isolated from none.
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
 * `name` listens, `-name` does not, the first that names the pool counts; `*` is for the pools that
 * are not named.
 */
function listens(listen: string, pool: string): boolean {
  const tokens = listen.split(',').map((token) => token.trim())
  const named = tokens.find((token) => token === pool || token === `-${pool}`)
  return named === undefined ? tokens.includes('*') : named === pool
}
