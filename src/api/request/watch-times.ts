import { jitter } from '../../base/clock.ts'
import type { ResourceRequest } from './request-info.ts'

// When a watch that is answered here is told of its version, and when it ends, as at an API server
// (apiserver pkg/storage/cacher, pkg/endpoints/handlers/get.go). In milliseconds.

export const bookmarkMs = 60_000

/** So long before its end a watch is told its version once more. */
export const lastBookmarkMs = 2_000

/**
 * How long a watch lasts: at least `leastMs` where its client did not say, and up to twice that.
 */
export function watchLifetimeMs({ query }: ResourceRequest, leastMs: number): number {
  const seconds = Number(query.get('timeoutSeconds') ?? 0)
  const asked = Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : jitter(1, 2) * leastMs
  return Math.min(asked, 24 * 3_600_000)
}
