/**
 * Every way in which an answer through the hub is known to differ; docs/design/differences.md has a
 * section of this name for each.
 */
export const differences = [
  'connections',
  'continue',
  'http-1.0',
  'heads',
  'parsing',
  'methods',
  'targets',
  'pages',
  'impersonation',
] as const

export type DifferenceName = (typeof differences)[number]
