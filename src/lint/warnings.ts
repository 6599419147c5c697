import type { JsonObject } from '../kube/json.ts'
import type { Context } from './context.ts'
import { findingsIn } from './lint.ts'

/** Clients show warnings one a line; an API server cuts one off after 256 bytes, and all of an answer after 4096 (KEP-1693). */
const longest = 250
const most = 10

/**
 * What to tell whoever creates this pod, gravest first: what `nodehub lint` says about it, but for what it only notes. `context` holds what is
 * known of the cluster; with pools missing there are fewer warnings, and none that is wrong.
 */
export function warningsOf(pod: JsonObject, context: Context): readonly string[] {
  const findings = findingsIn({ kind: 'Pod', ...pod }, context)
  return (['error', 'warning'] as const)
    .flatMap((level) => findings.filter((finding) => finding.level === level))
    .slice(0, most)
    .map(({ rule, message }) => cut(`${message} (${rule})`))
}

function cut(text: string): string {
  if (Buffer.byteLength(text) <= longest) return text
  return `${Buffer.from(text)
    .subarray(0, longest - 3)
    .toString()
    .replace(/\uFFFD+$/, '')}…`
}
