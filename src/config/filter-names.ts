/**
 * The built-in filters, by their names in flags and the ConfigMap, which are yurthub's
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
 * Filters that `--working-mode=cloud` leaves out, as yurthub does: they are for nodes that may lose
 * the cloud.
 */
export const edgeOnlyFilters: readonly (typeof filterNames)[number][] = [
  'discardcloudservice',
  'forwardkubesvctraffic',
  'serviceenvupdater',
  'hostnetworkpropagation',
]
