/** The URL path of each webhook. */
export const webhookPaths = {
  poolDefaults: '/mutate/nodepools',
  poolRules: '/validate/nodepools',
  nodeDefaults: '/mutate/nodes',
  podDefaults: '/mutate/pods',
  workloadWarnings: '/validate/workloads',
} as const
