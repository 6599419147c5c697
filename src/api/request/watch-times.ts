import { jitter } from '../../base/clock.ts'
import type { ResourceRequest } from './request-info.ts'

// When the hub sends bookmarks on a watch that it answers, and when it ends the watch, as an API
// server does (apiserver pkg/storage/cacher, pkg/endpoints/handlers/get.go). In milliseconds.

export const bookmarkMs = 60_000

/** The last bookmark precedes the end by this. */
export const lastBookmarkMs = 2_000

/** The duration of a watch: `timeoutSeconds`, else at random between `leastMs` and twice that. */
export function watchLifetimeMs({ query }: ResourceRequest, leastMs: number): number {
  const seconds = Number(query.get('timeoutSeconds') ?? 0)
  const lifetime = Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : jitter(1, 2) * leastMs
  return Math.min(lifetime, 24 * 3_600_000)
}
