/**
 * The hub's own filters, by the names that flags and the ConfigMap know them by: yurthub's
 * (cmd/yurthub/app/options/filters.go).
 */
export const filterNames = [
  'masterservice',
  'discardcloudservice',
  'servicetopology',
  'nodeportisolation',
  'inclusterconfig',
  'forwardkubesvctraffic',
  'serviceenvupdater',
  'hostnetworkpropagation',
] as const

/**
 * What is left out with `--working-mode=cloud`, as yurthub does: these are for nodes that may lose
 * the cloud.
 */
export const edgeOnlyFilters: readonly (typeof filterNames)[number][] = [
  'discardcloudservice',
  'forwardkubesvctraffic',
  'serviceenvupdater',
  'hostnetworkpropagation',
]
