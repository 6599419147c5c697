/**
 * The query parameters of requests for resources that the hub reads, or that change nothing in what
 * it would answer: those of ListOptions, GetOptions, CreateOptions, UpdateOptions and PatchOptions,
 * the rows of Tables, and what API servers take for any request.
 */
const understood = new Set([
  'allowWatchBookmarks',
  'continue',
  'fieldSelector',
  'labelSelector',
  'limit',
  'resourceVersion',
  'resourceVersionMatch',
  'sendInitialEvents',
  'timeoutSeconds',
  'watch',
  'includeObject',
  'dryRun',
  'fieldManager',
  'fieldValidation',
  'force',
  'pretty',
  'timeout',
])

/**
 * Whether the hub understands all parameters of a request for a resource. Another one may change
 * what the answer is of, as `shardSelector` does.
 */
export function areUnderstood(query: URLSearchParams): boolean {
  for (const name of query.keys()) if (!understood.has(name)) return false
  return true
}
