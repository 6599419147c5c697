/** The URL path of each webhook. */
export const webhookPaths = {
  poolDefaults: '/mutate/nodepools',
  poolRules: '/validate/nodepools',
  nodeDefaults: '/mutate/nodes',
  nodeRules: '/validate/nodes',
  podDefaults: '/mutate/pods',
  workloadWarnings: '/validate/workloads',
} as const
