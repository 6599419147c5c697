import type { GVK } from '../gvk.ts'

/**
 * How a strategic merge patch treats the members of an object: unlisted members merge as objects
 * and replace as lists.
 */
export interface MergeSchema {
  readonly [member: string]: MergeField
}

export interface MergeField {
  /** For lists that merge: the member that identifies elements, '' for lists of plain values. */
  readonly key?: string
  /** Of the object, or of the elements. */
  readonly members?: MergeSchema
}

// `patchStrategy` and `patchMergeKey` of the API's Go types. Taints, tolerations and most other
// lists have neither.

const by = (key: string, members?: MergeSchema): MergeField => ({
  key,
  ...(members && { members }),
})

const values: MergeField = { key: '' }

const within = (members: MergeSchema): MergeField => ({ members })

const metadata = within({ ownerReferences: by('uid'), finalizers: values })

const conditions = within({ conditions: by('type') })

const container = {
  ports: by('containerPort'),
  env: by('name'),
  volumeMounts: by('mountPath'),
  volumeDevices: by('devicePath'),
}

const claimTemplate = within({ metadata })

const podSpec = within({
  volumes: by('name', { ephemeral: within({ volumeClaimTemplate: claimTemplate }) }),
  initContainers: by('name', container),
  containers: by('name', container),
  ephemeralContainers: by('name', container),
  imagePullSecrets: by('name'),
  hostAliases: by('ip'),
  topologySpreadConstraints: by('topologyKey'),
  schedulingGates: by('name'),
  resourceClaims: by('name'),
})

// Statuses of containers are replaced as lists, and so never merged further down.
const podStatus = within({
  conditions: by('type'),
  hostIPs: by('ip'),
  podIPs: by('ip'),
  resourceClaimStatuses: by('name'),
})

const template = within({ metadata, spec: podSpec })

const workload = { spec: within({ template }), status: conditions }

const kinds: Readonly<Record<string, MergeSchema>> = {
  ' Pod': { spec: podSpec, status: podStatus },
  ' Node': {
    spec: within({ podCIDRs: values }),
    status: within({ conditions: by('type'), addresses: by('type') }),
  },
  ' Service': { spec: within({ ports: by('port') }), status: conditions },
  ' Namespace': { status: conditions },
  ' ServiceAccount': { secrets: by('name') },
  'storage.k8s.io CSINode': { spec: within({ drivers: by('name') }) },
  'apps DaemonSet': workload,
  'apps Deployment': workload,
  'apps ReplicaSet': workload,
  'apps StatefulSet': workload,
  'batch Job': workload,
  'batch CronJob': { spec: within({ jobTemplate: within({ metadata, ...workload }) }) },
}

/** The schema of a kind of Kubernetes; of unlisted kinds only metadata merges by key. */
export const mergeSchemaOf = ({ group, kind }: Pick<GVK, 'group' | 'kind'>): MergeSchema => {
  const name = `${group} ${kind}`
  return { metadata, ...(Object.hasOwn(kinds, name) && kinds[name]) }
}
