import type { JsonObject } from '../../api/kube/json.ts'
import type { Context } from './context.ts'
import { findingsIn } from './rules.ts'

/**
 * Clients show warnings one a line; an API server cuts one off after 256 bytes, and all of an
 * answer after 4096 (KEP-1693).
 */
const longest = 250
const most = 10

/**
 * The warnings for the author of a pod or a workload, gravest first: lint's findings, without notes
 * and without the rules in `settled`. `context` holds the facts about the cluster; with pools
 * missing there are fewer warnings, and none that is wrong. An object without a kind is a pod.
 */
export function warningsOf(
  object: JsonObject,
  context: Context,
  settled: readonly string[] = [],
): readonly string[] {
  const findings = findingsIn({ kind: 'Pod', ...object }, context).filter(
    ({ rule }) => !settled.includes(rule),
  )
  return (['error', 'warning'] as const)
    .flatMap((level) => findings.filter((finding) => finding.level === level))
    .slice(0, most)
    .map(({ rule, message }) => cut(`${message} (${rule})`))
}

function cut(text: string): string {
  if (Buffer.byteLength(text) <= longest) return text
  // As a part of a stream: a character that is cut in two is left out.
  const whole = new TextDecoder('utf-8', { ignoreBOM: true })
  return `${whole.decode(Buffer.from(text).subarray(0, longest - 3), { stream: true })}…`
}
