interface Unreadable {
  /** The reason, as part of a sentence. */
  readonly why: string
  /** The advice, as the continuation of that sentence; may be empty. */
  readonly advice: string
}

/**
 * Why the hub cannot read a collection, by the status code of an answer that is no list. Only a 403
 * is a matter of rights.
 */
export function unreadable(code: number): Unreadable {
  switch (code) {
    case 403:
      return {
        why: 'the API server does not let this node get, list and watch them',
        advice: ', nodehub manifests --part rbac has the right',
      }
    case 401:
      return {
        why: "the API server does not accept the hub's credentials",
        advice: ', /readyz?verbose says why',
      }
    case 200:
      return { why: 'the answer is no list of them', advice: ': is that an API server?' }
    default:
      return { why: 'the API server does not list them', advice: '' }
  }
}
