import { knownPrograms } from '../api/kube/programs.ts'

/**
 * Replaces unknown values: a client chooses its name and its paths, and must not choose the number
 * of series.
 */
const other = 'other'

const words = (text: string): string[] => text.trim().split(/\s+/)

const verbs = new Set(
  words(`
  get list watch create update patch delete deletecollection
  head post put options connect
`),
)

/**
 * Of Kubernetes itself (core, apps, batch, networking, storage, authentication and so on) and of
 * node agents.
 */
const resources = new Set(
  words(`
  bindings componentstatuses configmaps endpoints events limitranges
  namespaces nodes persistentvolumeclaims persistentvolumes pods
  podtemplates replicationcontrollers resourcequotas secrets serviceaccounts
  services
  controllerrevisions daemonsets deployments replicasets statefulsets
  cronjobs jobs horizontalpodautoscalers poddisruptionbudgets priorityclasses
  ingresses ingressclasses networkpolicies ipaddresses servicecidrs
  endpointslices leases runtimeclasses csidrivers csinodes
  csistoragecapacities storageclasses volumeattachments resourceclaims
  resourceslices deviceclasses
  tokenreviews subjectaccessreviews selfsubjectaccessreviews selfsubjectreviews
  localsubjectaccessreviews selfsubjectrulesreviews clusterroles roles
  clusterrolebindings rolebindings certificatesigningrequests clustertrustbundles
  podcertificaterequests customresourcedefinitions apiservices
  nodepools nodebuckets gateways
`),
)

const subresources = new Set(
  words(`
  status scale log exec attach portforward proxy binding bindings eviction
  token ephemeralcontainers resize finalize approval
`),
)

type Bound = (value: string) => string

const oneOf =
  (known: ReadonlySet<string>): Bound =>
  (value) =>
    value === '' || known.has(value) ? value : other

const any: Bound = (value) => value

/** Every label, and the bound of its values. */
export type Bounds = ReturnType<typeof labelBounds>

export type Label = keyof Bounds

/**
 * Bounds the values of each label. `components` are known in addition to the well-known ones, and
 * may change.
 */
export function labelBounds(components: () => ReadonlySet<string>) {
  const known = oneOf(knownPrograms)
  const component: Bound = (value) => (components().has(value) ? value : known(value))
  return {
    verb: oneOf(verbs),
    resource: oneOf(resources),
    subresources: oneOf(subresources),
    component,
    // yurthub has the whole User-Agent here, with versions.
    client: component,
    code: (value) => (/^(?:0|[1-5]\d\d)$/.test(value) ? value : other),
    source: oneOf(new Set(['cloud', 'cache', 'hub'])),
    // Bounded by the configuration, or constants of the code.
    upstream: any,
    protocol: any,
    server: any,
    outcome: any,
    result: any,
    filter: any,
    kind: any,
    reason: any,
    priority_level: any,
    certificate: any,
    version: any,
    node: any,
  } as const satisfies Readonly<Record<string, Bound>>
}
