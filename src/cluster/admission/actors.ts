/** The users that may change reserved labels of nodes, by their names at the API server. */
export interface Actors {
  /** The NodePool controller, which alone sets the hostnetwork label. */
  readonly controllers: ReadonlySet<string>
  /** Besides nodes themselves: controllers that convert nodes into edge workers and back. */
  readonly converters: ReadonlySet<string>
}

/**
 * OpenYurt's controller that turns nodes into edge workers and back (openyurt
 * pkg/yurtmanager/controller/yurtnodeconversion).
 */
const converters = new Set([
  'system:serviceaccount:kube-system:yurt-manager-yurt-node-conversion-controller',
])

/**
 * The users that may change reserved labels of nodes, where the controller runs as this service
 * account or as any of `others`.
 */
export const actorsOf = (
  { namespace, name }: { readonly namespace: string; readonly name: string },
  others: readonly string[] = [],
): Actors => ({
  controllers: new Set([`system:serviceaccount:${namespace}:${name}`, ...others]),
  converters,
})
