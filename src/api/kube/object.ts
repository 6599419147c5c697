/** One object of a list, watch or get: its identity and its bytes. */
export interface ApiObject {
  /** Empty for a cluster-scoped object. */
  readonly namespace: string
  readonly name: string
  readonly uid: string
  /** As the API server wrote it. */
  readonly resourceVersion: string
  /**
   * The object as a list holds it: in JSON the value (kind and apiVersion only if the list's
   * items have them), in protobuf the message without envelope. Never modified: an
   * edited object is a new one.
   */
  readonly bytes: Uint8Array
}

/**
 * `namespace/name`, or the name of a cluster-scoped object, as client-go's MetaNamespaceKeyFunc.
 */
export const namespacedName = ({
  namespace,
  name,
}: {
  readonly namespace?: string | undefined
  readonly name: string
}): string => (namespace ? `${namespace}/${name}` : name)

/** `metadata` of a list. An empty string is a missing field. */
export interface ListMeta {
  readonly resourceVersion: string
  readonly continue: string
}

/**
 * The annotation of the bookmark that ends the initial events of a WatchList (apimachinery
 * pkg/apis/meta/v1/types.go).
 */
export const initialEventsEndAnnotation = 'k8s.io/initial-events-end'
