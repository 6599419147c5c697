import type { Actors } from './node.ts'

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
