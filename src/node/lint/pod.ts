import { isObject, type JsonObject } from '../../api/kube/json.ts'
import {
  valueAt,
  optionalObjectAt,
  optionalTextAt,
  listAt,
  objectAt,
  textAt,
} from '../../api/kube/json-at.ts'
import type { Path } from './finding.ts'

/** A pod or a pod template, in whichever object. */
export interface PodSubject {
  /** The kind of the object that contains it. */
  readonly kind: string
  readonly namespace: string
  /** The name of that object, for a message. */
  readonly name: string
  /** The object that contains it. */
  readonly owner: JsonObject
  /** The path in that object to the parent of the pod's metadata and spec. */
  readonly base: Path
  readonly metadata: JsonObject
  readonly spec: JsonObject
  /** Only some members of a spec were given: missing ones mean nothing. */
  readonly fragment?: true
}

/**
 * The way to the template of pods, by kind. Kinds of the same names in other groups are built
 * alike.
 */
const templates: Readonly<Record<string, readonly string[]>> = {
  Deployment: ['spec', 'template'],
  DaemonSet: ['spec', 'template'],
  StatefulSet: ['spec', 'template'],
  ReplicaSet: ['spec', 'template'],
  ReplicationController: ['spec', 'template'],
  Job: ['spec', 'template'],
  CronJob: ['spec', 'jobTemplate', 'spec', 'template'],
  PodTemplate: ['template'],
  YurtStaticSet: ['spec', 'template'],
}

/**
 * YurtAppSet and YurtAppDaemon hold one template of a workload each, in one of these (OpenYurt's
 * pkg/apis/apps).
 */
const workloadTemplates = [
  ['spec', 'workload', 'workloadTemplate', 'deploymentTemplate'],
  ['spec', 'workload', 'workloadTemplate', 'statefulSetTemplate'],
  ['spec', 'workloadTemplate', 'deploymentTemplate'],
  ['spec', 'workloadTemplate', 'statefulSetTemplate'],
]

/** Members that identify a mapping without a kind as part of a pod's spec. */
const ofSpec = ['affinity', 'containers', 'dnsPolicy', 'hostNetwork', 'nodeSelector', 'tolerations']

/** The pod or the templates of pods in an object; none in an object of another kind. */
export function podsOf(object: JsonObject): readonly PodSubject[] {
  const kind = optionalTextAt(object, 'kind')
  if (kind === undefined) return fragmentOf(object)
  if (kind === 'Pod') return [subjectAt(object, [])]
  if (kind === 'YurtAppSet' || kind === 'YurtAppDaemon') {
    return workloadTemplates
      .filter((way) => optionalObjectAt(object, ...way) !== undefined)
      .map((way) => subjectAt(object, [...way, 'spec', 'template']))
  }
  const way = Object.hasOwn(templates, kind) ? templates[kind] : undefined
  return way && optionalObjectAt(object, ...way) ? [subjectAt(object, way)] : []
}

function subjectAt(owner: JsonObject, base: readonly string[]): PodSubject {
  const pod = optionalObjectAt(owner, ...base)
  return {
    kind: textAt(owner, 'kind'),
    namespace: optionalTextAt(owner, 'metadata', 'namespace') ?? 'default',
    name: optionalTextAt(owner, 'metadata', 'name') ?? textAt(owner, 'metadata', 'generateName'),
    owner,
    base,
    metadata: objectAt(pod, 'metadata'),
    spec: objectAt(pod, 'spec'),
  }
}

function fragmentOf(object: JsonObject): readonly PodSubject[] {
  if (!ofSpec.some((name) => Object.hasOwn(object, name))) return []
  const nothing = { kind: '', namespace: 'default', name: '', metadata: {} }
  return [{ ...nothing, owner: object, base: [], spec: object, fragment: true }]
}

/** The path of a member of the pod's spec in the whole object. */
export const inSpec = (pod: PodSubject, ...path: Path): Path =>
  pod.fragment ? path : [...pod.base, 'spec', ...path]

/** The path of a member of the pod's metadata in the whole object. */
export const inMetadata = (pod: PodSubject, ...path: Path): Path => [
  ...pod.base,
  'metadata',
  ...path,
]

export const onHostNetwork = (pod: PodSubject): boolean => pod.spec['hostNetwork'] === true

/** A port that a container declares. */
export interface Port {
  readonly containerPort: number
  /** As it will be: with hostNetwork the API server fills in the container's own. 0: none. */
  readonly hostPort: number
  readonly protocol: string
  readonly hostIP: string
  readonly path: Path
}

/** The ports of all containers that run while the pod does, as the scheduler counts them. */
export function portsOf(pod: PodSubject): readonly Port[] {
  return (['containers', 'initContainers'] as const).flatMap((list) =>
    listAt(pod.spec, list).flatMap((container, number) => {
      if (list === 'initContainers' && valueAt(container, 'restartPolicy') !== 'Always') return []
      return listAt(container, 'ports').flatMap((port, each): Port[] => {
        const containerPort = valueAt(port, 'containerPort')
        if (!isObject(port) || typeof containerPort !== 'number') return []
        const given = valueAt(port, 'hostPort')
        const hostPort = typeof given === 'number' ? given : 0
        return [
          {
            containerPort,
            hostPort: hostPort === 0 && onHostNetwork(pod) ? containerPort : hostPort,
            protocol: optionalTextAt(port, 'protocol') ?? 'TCP',
            hostIP: optionalTextAt(port, 'hostIP') ?? '0.0.0.0',
            path: inSpec(pod, list, number, 'ports', each),
          },
        ]
      })
    }),
  )
}
