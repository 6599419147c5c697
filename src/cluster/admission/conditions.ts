import {
  desiredNodePoolLabel,
  excludeAnnotation,
  hostNetworkLabel,
  isEdgeWorkerLabel,
  nodePoolLabel,
} from '../../api/kube/node-pool.ts'
import { previousAttributesAnnotation } from '../previous-attributes.ts'
import { annotationOf, any, isCreate, isOneOf, labelOf, quoted, user } from './cel.ts'

/** A condition under which the API server sends a request to a webhook or evaluates a policy. */
export interface MatchCondition {
  readonly name: string
  readonly expression: string
}

const changed = (of: (self: string, name: string) => string, name: string): string =>
  `${of('object', name)} != ${of('oldObject', name)}`

/**
 * Of a node only these matter. A kubelet's status, which comes every few seconds, changes none of
 * them.
 */
const nodeChanges = any(
  ...[nodePoolLabel, desiredNodePoolLabel, hostNetworkLabel, isEdgeWorkerLabel].map((name) =>
    changed(labelOf, name),
  ),
  changed(annotationOf, previousAttributesAnnotation),
)

/**
 * The controller's own writes need no webhook, and must not wait for the webhooks that it keeps
 * working.
 */
const isNotOurOwn = (controllers: readonly string[]): MatchCondition => ({
  name: 'is-not-our-own',
  expression: `!(${isOneOf(user, controllers)})`,
})

/** Requests about nodes that concern pools. */
export const nodeConditions = (controllers: readonly string[]): readonly MatchCondition[] => [
  { name: 'concerns-its-pool', expression: any(isCreate, nodeChanges) },
  isNotOurOwn(controllers),
]

/** Writes of pools by others. */
export const poolConditions = (controllers: readonly string[]): readonly MatchCondition[] => [
  isNotOurOwn(controllers),
]

const isExcluded = `${annotationOf('object', excludeAnnotation)} == "true"`

const isNoMirror = `!(${quoted('kubernetes.io/config.mirror')} in object.metadata.?annotations.orValue({}))`

/** Pods that admission may change. In kube-system only pods with the exclude annotation. */
export const podConditions: readonly MatchCondition[] = [
  { name: 'is-no-mirror-pod', expression: isNoMirror },
  {
    name: 'is-no-part-of-the-cluster',
    expression: any('request.namespace != "kube-system"', isExcluded),
  },
]

/**
 * Pod templates written by users, not by a controller or the cluster itself: a warning needs a
 * reader.
 */
export const workloadConditions: readonly MatchCondition[] = [
  { name: 'is-no-part-of-the-cluster', expression: 'request.namespace != "kube-system"' },
  {
    name: 'has-no-owner',
    expression:
      '!object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false))',
  },
  {
    name: 'is-new-or-changed',
    expression: any(isCreate, 'object.metadata.?generation != oldObject.metadata.?generation'),
  },
]

/** New pools, and those that were written in a version that lacks fields. */
export const poolDefaultConditions: readonly MatchCondition[] = [
  {
    name: 'lacks-something',
    expression: any(isCreate, 'request.requestKind.version != "v1beta2"'),
  },
]
