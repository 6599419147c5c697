/**
 * The users that are the controller of NodePools, by their names at the API server: this service
 * account and `others`.
 */
export const controllersOf = (
  { namespace, name }: { readonly namespace: string; readonly name: string },
  others: readonly string[] = [],
): readonly string[] => [`system:serviceaccount:${namespace}:${name}`, ...others]
