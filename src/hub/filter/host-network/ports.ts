import type { Cursor, Path } from '../../../api/codec/cursor.ts'

/** A port that a container declares. */
export interface DeclaredPort {
  readonly container: string
  readonly containerPort: number
  /** 0: none. */
  readonly hostPort: number
  readonly protocol: string
}

/**
 * The ports that a pod's containers declare, including sidecars (init containers that keep
 * running).
 */
export function portsOf(pod: Cursor): readonly DeclaredPort[] {
  const containers = inListAt(pod, ['spec', 'containers'])
  const sidecars = inListAt(pod, ['spec', 'initContainers']).filter(
    (at) => pod.value([...at, 'restartPolicy']) === 'Always',
  )
  return [...containers, ...sidecars].flatMap((container) =>
    inListAt(pod, [...container, 'ports']).map((at) => ({
      container: String(pod.value([...container, 'name']) ?? ''),
      containerPort: Number(pod.value([...at, 'containerPort']) ?? 0),
      hostPort: Number(pod.value([...at, 'hostPort']) ?? 0),
      protocol: String(pod.value([...at, 'protocol']) ?? 'TCP'),
    })),
  )
}

const inListAt = (pod: Cursor, path: Path): readonly Path[] =>
  Array.from({ length: pod.count(path) }, (_, at) => [...path, at])
