import type { Json } from '../json.ts'
import { badRequest, StatusError } from '../status.ts'

/**
 * API objects nest a dozen levels or two; deeper patches are refused before anything recurses into
 * them.
 */
export const maxDepth = 256

const tooDeep = (): StatusError =>
  new StatusError(badRequest(`the patch nests deeper than ${maxDepth} levels`))

/** Throws a StatusError when `value` nests too deep. */
export function checkDepth(value: Json, depth = maxDepth): void {
  if (typeof value !== 'object' || value === null) return
  if (depth === 0) throw tooDeep()
  for (const member of Object.values(value) as Json[]) checkDepth(member, depth - 1)
}
