interface Unreadable {
  /** As a sentence goes on with it. */
  readonly why: string
  /** What to do, which goes on from there; may be empty. */
  readonly advice: string
}

/**
 * Why the hub cannot read a collection, from the code of an answer that is no list. Rights help
 * against a 403 alone.
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
      return { why: 'what was answered is no list of them', advice: ': is that an API server?' }
    default:
      return { why: 'the API server does not list them', advice: '' }
  }
}
