import type { Json } from '../json.ts'
import { badRequest, StatusError } from '../status.ts'

/**
 * API objects nest a dozen levels or two; deeper patches are refused before anything recurses into
 * them.
 */
export const maxDepth = 256

/** The server's own limit (apiserver pkg/endpoints/handlers/patch.go). */
export const maxOperations = 10_000

/** How many bytes of JSON all copy operations of a patch may add: the server's limit for a body. */
export const maxCopied = 3 * 1024 * 1024

export const tooDeep = (): StatusError =>
  new StatusError(badRequest(`the patch nests deeper than ${maxDepth} levels`))

/** Throws a StatusError when `value` nests too deep. */
export function checkDepth(value: Json, depth = maxDepth): void {
  if (typeof value !== 'object' || value === null) return
  if (depth === 0) throw tooDeep()
  for (const member of Object.values(value) as Json[]) checkDepth(member, depth - 1)
}
