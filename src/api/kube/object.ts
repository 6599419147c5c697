/** One object as a list, watch or get showed it: what is known of it, and its bytes. */
export interface ApiObject {
  /** Empty for what is cluster-scoped. */
  readonly namespace: string
  readonly name: string
  readonly uid: string
  /** As the cloud wrote it. A Table row without an object, and nothing else, has none: ''. */
  readonly resourceVersion: string
  /**
   * The object as a list holds it: in JSON the value (a Table's row; kind and apiVersion only where
   * the list's items carry them), in protobuf the message without envelope. Never written to: an
   * edited object is a new one.
   */
  readonly bytes: Uint8Array
}

/**
 * `namespace/name`, or the name of what is cluster-scoped, as client-go's MetaNamespaceKeyFunc.
 */
export const namespacedName = ({
  namespace,
  name,
}: {
  readonly namespace?: string | undefined
  readonly name: string
}): string => (namespace ? `${namespace}/${name}` : name)

/** `metadata` of a list, as it came. An empty string is a field that was not there. */
export interface ListMeta {
  readonly resourceVersion: string
  readonly continue: string
}

/**
 * A bookmark's annotation that closes the initial events of a WatchList (apimachinery
 * pkg/apis/meta/v1/types.go).
 */
export const initialEventsEndAnnotation = 'k8s.io/initial-events-end'
