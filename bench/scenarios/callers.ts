/** Callers whose answers a recording proxy keeps, and does not. */
export const recorded = { 'User-Agent': 'kubelet/v1.35.0' } as const
export const passed = { 'User-Agent': 'bench/1' } as const

export const json = 'application/json'
/** A kubelet's Accept header: protobuf, else JSON. */
export const protobuf = 'application/vnd.kubernetes.protobuf,application/json'
/** A kubelet's Accept header for a watch. */
export const protobufWatch =
  'application/vnd.kubernetes.protobuf;stream=watch,application/vnd.kubernetes.protobuf'
