import type { Cursor } from './cursor.ts'

/**
 * Whether a Pod mirrors a static pod, which its kubelet runs from a file. The kubelet compares the
 * mirror with that file, and deletes it where they differ (kubernetes
 * pkg/kubelet/types/pod_update.go).
 */
export const isMirrorPod = (pod: Cursor): boolean =>
  pod.mentions('config.mirror') && pod.annotation('kubernetes.io/config.mirror') !== undefined
