import type { Json, JsonObject } from '../api/kube/json.ts'
import {
  listAt,
  objectAt,
  optionalTextAt,
  printed,
  textAt,
  valueAt,
  withAt,
} from '../api/kube/json-at.ts'
import type { Kind } from './kinds.ts'

/** The defaults that kube-apiserver sets on creation, as far as clients on nodes see them. */
export function defaulted(kind: Kind, object: JsonObject): JsonObject {
  if (kind.custom) return object
  const fill = fillers[`${kind.gvr.group}/${kind.gvr.resource}`]
  return fill ? fill(object) : object
}

const fillers: Record<string, (object: JsonObject) => JsonObject> = {
  '/pods': pod,
  '/services': service,
  '/secrets': (secret) => secretData({ type: 'Opaque', ...secret }),
  '/nodes': node,
  '/namespaces': namespace,
  '/persistentvolumeclaims': (claim) => withAt(claim, ['status'], { phase: 'Pending' }),
  'apps/deployments': workload,
  'apps/replicasets': workload,
  'apps/daemonsets': workload,
  'apiextensions.k8s.io/customresourcedefinitions': definition,
}

/** Members that are there win over defaults. */
const under = (defaults: JsonObject, given: JsonObject): JsonObject => ({ ...defaults, ...given })

function pod(given: JsonObject): JsonObject {
  const spec = objectAt(given, 'spec')
  const account = textAt(spec, 'serviceAccountName') || textAt(spec, 'serviceAccount') || 'default'
  const filled = under(
    {
      ...podTemplateDefaults,
      serviceAccountName: account,
      serviceAccount: account,
      tolerations: [],
      priority: 0,
      enableServiceLinks: true,
      preemptionPolicy: 'PreemptLowerPriority',
    },
    spec,
  )
  const host = valueAt(spec, 'hostNetwork') === true
  return {
    ...given,
    spec: {
      ...filled,
      ...containersOf(spec, host),
      tolerations: [...listAt(spec, 'tolerations'), ...evictionTolerations(spec)],
    },
    status: { phase: 'Pending', qosClass: quality(spec) },
  }
}

const podTemplateDefaults: JsonObject = {
  restartPolicy: 'Always',
  terminationGracePeriodSeconds: 30,
  dnsPolicy: 'ClusterFirst',
  securityContext: {},
  schedulerName: 'default-scheduler',
}

function containersOf(spec: JsonObject, host: boolean): JsonObject {
  const filled: Record<string, Json> = {}
  for (const list of ['initContainers', 'containers']) {
    const containers = listAt(spec, list)
    if (containers.length > 0) filled[list] = containers.map((one) => container(one, host))
  }
  return filled
}

function container(given: Json, host: boolean): Json {
  const image = textAt(given, 'image')
  const [, tag] = image.slice(image.lastIndexOf('/') + 1).split(':', 2)
  const filled = under(
    {
      resources: {},
      terminationMessagePath: '/dev/termination-log',
      terminationMessagePolicy: 'File',
      imagePullPolicy: tag === undefined || tag === 'latest' ? 'Always' : 'IfNotPresent',
    },
    withRequests(objectAt(given)),
  )
  const ports = listAt(given, 'ports')
  if (ports.length === 0) return filled
  return {
    ...filled,
    ports: ports.map((port) => {
      const number = valueAt(port, 'containerPort') ?? 0
      return under({ ...(host && { hostPort: number }), protocol: 'TCP' }, objectAt(port))
    }),
  }
}

/** Requests default to limits. */
function withRequests(container: JsonObject): JsonObject {
  const limits = objectAt(container, 'resources', 'limits')
  if (Object.keys(limits).length === 0) return container
  const requests = under(limits, objectAt(container, 'resources', 'requests'))
  return withAt(container, ['resources', 'requests'], requests)
}

/** As the admission plug-in DefaultTolerationSeconds adds them. */
function evictionTolerations(spec: JsonObject): Json[] {
  const tolerated = listAt(spec, 'tolerations')
  return ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']
    .filter(
      (key) => !tolerated.some((one) => [key, undefined].includes(optionalTextAt(one, 'key'))),
    )
    .map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 }))
}

function quality(spec: JsonObject): string {
  const containers = listAt(spec, 'containers')
  const amounts = (one: Json, side: string): JsonObject => objectAt(one, 'resources', side)
  const any = containers.some((one) =>
    ['requests', 'limits'].some((side) => Object.keys(amounts(one, side)).length > 0),
  )
  if (!any) return 'BestEffort'
  const guaranteed = containers.every((one) =>
    ['cpu', 'memory'].every((name) => {
      const limit = valueAt(amounts(one, 'limits'), name)
      return (
        limit !== undefined && [limit, undefined].includes(valueAt(amounts(one, 'requests'), name))
      )
    }),
  )
  return guaranteed ? 'Guaranteed' : 'Burstable'
}

function service(given: JsonObject): JsonObject {
  const spec = objectAt(given, 'spec')
  const ip = optionalTextAt(spec, 'clusterIP')
  const address =
    ip === undefined && optionalTextAt(spec, 'type') !== 'ExternalName' ? nextClusterIp() : ip
  const addresses: JsonObject =
    address === undefined || address === ''
      ? {}
      : { clusterIP: address, clusterIPs: [address], ...familiesOf(spec, address) }
  const ports = listAt(spec, 'ports').map((port) =>
    under({ protocol: 'TCP', targetPort: valueAt(port, 'port') ?? 0 }, objectAt(port)),
  )
  return {
    ...given,
    spec: under(
      {
        ...addresses,
        type: 'ClusterIP',
        sessionAffinity: 'None',
        internalTrafficPolicy: 'Cluster',
      },
      { ...spec, ...(ports.length > 0 && { ports }) },
    ),
    status: { loadBalancer: {} },
  }
}

/** A headless service without a selector may be of both families. */
const familiesOf = (spec: JsonObject, address: string): JsonObject =>
  address === 'None' && Object.keys(objectAt(spec, 'selector')).length === 0
    ? { ipFamilies: ['IPv4', 'IPv6'], ipFamilyPolicy: 'RequireDualStack' }
    : { ipFamilies: ['IPv4'], ipFamilyPolicy: 'SingleStack' }

let lastClusterIp = 10

/** An address of 10.96.0.0/16 that was not handed out before. */
function nextClusterIp(): string {
  lastClusterIp = (lastClusterIp + 1) % 65_536
  return `10.96.${lastClusterIp >> 8}.${lastClusterIp & 255}`
}

function secretData(secret: JsonObject): JsonObject {
  const { stringData, ...rest } = secret
  const plain = Object.entries(objectAt(stringData)).map(([key, value]) => [
    key,
    Buffer.from(printed(value)).toString('base64'),
  ])
  if (plain.length === 0) return rest
  return { ...rest, data: { ...objectAt(secret, 'data'), ...Object.fromEntries(plain) } }
}

function node(given: JsonObject): JsonObject {
  const cidr = optionalTextAt(given, 'spec', 'podCIDR')
  const withCidrs =
    cidr === undefined ? given : under(given, withAt(given, ['spec', 'podCIDRs'], [cidr]))
  const taints = listAt(given, 'spec', 'taints')
  const notReady = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }
  // As the admission plug-in TaintNodesByCondition adds it.
  return taints.some((taint) => optionalTextAt(taint, 'key') === notReady.key)
    ? withCidrs
    : withAt(withCidrs, ['spec', 'taints'], [...taints, notReady])
}

function namespace(given: JsonObject): JsonObject {
  const name = textAt(given, 'metadata', 'name')
  const labels = { ...objectAt(given, 'metadata', 'labels'), 'kubernetes.io/metadata.name': name }
  return {
    ...withAt(given, ['metadata', 'labels'], labels),
    spec: { finalizers: ['kubernetes'] },
    status: { phase: 'Active' },
  }
}

function workload(given: JsonObject): JsonObject {
  const template = objectAt(given, 'spec', 'template')
  const spec = objectAt(template, 'spec')
  const filled = withAt(given, ['spec', 'template', 'spec'], {
    ...under(podTemplateDefaults, spec),
    ...containersOf(spec, valueAt(spec, 'hostNetwork') === true),
  })
  return valueAt(given, 'spec', 'replicas') === undefined &&
    optionalTextAt(given, 'kind') !== 'DaemonSet'
    ? withAt(filled, ['spec', 'replicas'], 1)
    : filled
}

function definition(given: JsonObject): JsonObject {
  const names = objectAt(given, 'spec', 'names')
  const kind = textAt(names, 'kind')
  const accepted = under({ singular: kind.toLowerCase(), listKind: `${kind}List` }, names)
  const condition = (type: string, reason: string): JsonObject => ({
    type,
    status: 'True',
    reason,
    message: type === 'Established' ? 'the initial names have been accepted' : 'no conflicts found',
  })
  return {
    ...given,
    spec: { ...objectAt(given, 'spec'), conversion: { strategy: 'None' }, names: accepted },
    status: {
      conditions: [
        condition('NamesAccepted', 'NoConflicts'),
        condition('Established', 'InitialNamesAccepted'),
      ],
      acceptedNames: accepted,
      storedVersions: listAt(given, 'spec', 'versions')
        .filter((version) => valueAt(version, 'storage') === true)
        .map((version) => textAt(version, 'name')),
    },
  }
}
