import type { JsonObject } from '../../api/kube/json.ts'
import { listAt, objectAt, textAt, valueAt } from '../../api/kube/json-at.ts'
import { affinityKeptOff } from '../components/placement.ts'
import type { PatchOptions } from './patch.ts'
import { editedPorts } from './ports.ts'

/**
 * A pod or Job to be created in place of an existing one, without the fields that the API server
 * and controllers have written. `options` decide where it runs.
 */
export function recreated(
  object: JsonObject,
  options: Pick<PatchOptions, 'intent' | 'nodeSelector'>,
): JsonObject {
  const { apiVersion = 'v1', kind = 'Pod' } = object
  const metadata = metadataOf(object)
  if (kind !== 'Job') {
    const spec = podSpecOf(object, options)
    return { apiVersion, kind, metadata, spec }
  }
  const { template, ...rest } = objectAt(object, 'spec')
  const { selector, ...unselected } = rest
  const manual = rest['manualSelector'] === true
  return {
    apiVersion,
    kind,
    metadata,
    spec: {
      ...unselected,
      ...(manual && selector !== undefined && { selector }),
      template: {
        metadata: metadataOf(objectAt({ template: template ?? {} }, 'template')),
        spec: podSpecOf(objectAt({ template: template ?? {} }, 'template'), options),
      },
    },
  }
}

/** Labels by which the Job controller finds its pods, and which it writes itself. */
const ofController = /^(controller-uid|job-name)$|^batch\.kubernetes\.io\//

function metadataOf(object: JsonObject): JsonObject {
  const { name, namespace, labels, annotations } = objectAt(object, 'metadata')
  const kept = (members: JsonObject, drop: RegExp): JsonObject =>
    Object.fromEntries(Object.entries(members).filter(([key]) => !drop.test(key)))
  return {
    ...(name !== undefined && { name }),
    ...(namespace !== undefined && { namespace }),
    ...(labels !== undefined && { labels: kept(objectAt({ labels }, 'labels'), ofController) }),
    ...(annotations !== undefined && {
      annotations: kept(
        objectAt({ annotations }, 'annotations'),
        /^kubectl\.kubernetes\.io\/last-applied-configuration$|^batch\.kubernetes\.io\//,
      ),
    }),
  }
}

/** Members of a pod's spec that admission and the scheduler write. */
const written = ['nodeName', 'priority', 'preemptionPolicy', 'ephemeralContainers']

function podSpecOf(object: JsonObject, options: Parameters<typeof recreated>[1]): JsonObject {
  const given = objectAt(object, 'spec')
  const spec = withoutTokenVolume(
    Object.fromEntries(Object.entries(given).filter(([name]) => !written.includes(name))),
  )
  const { intent, nodeSelector } = options
  if (intent === 'keep-off') return { ...spec, affinity: affinityKeptOff(object) ?? {} }
  return {
    ...spec,
    hostNetwork: true,
    ...editedPorts(spec, 'merge'),
    ...(Object.keys(nodeSelector).length > 0 && {
      nodeSelector: { ...objectAt(spec, 'nodeSelector'), ...nodeSelector },
    }),
  }
}

/** The volume that admission gives a pod for its token, which it would refuse to give twice. */
function withoutTokenVolume(spec: JsonObject): JsonObject {
  const isToken = (name: string): boolean => /^kube-api-access-[a-z0-9]{5}$/.test(name)
  const volumes = listAt(spec, 'volumes')
  if (!volumes.some((each) => isToken(textAt(each, 'name')))) return spec
  const lists = ['containers', 'initContainers'].flatMap((list) =>
    valueAt(spec, list) === undefined
      ? []
      : [
          [
            list,
            listAt(spec, list).map((container) => ({
              ...objectAt({ container }, 'container'),
              volumeMounts: listAt(container, 'volumeMounts').filter(
                (mount) => !isToken(textAt(mount, 'name')),
              ),
            })),
          ] as const,
        ],
  )
  return {
    ...spec,
    ...Object.fromEntries(lists),
    volumes: volumes.filter((each) => !isToken(textAt(each, 'name'))),
  }
}
