/**
 * The Helm chart and the kustomize base of the cluster's side, written from the same objects as
 * `nodehub manifests --part cluster`.
 */
import { stringify } from 'yaml'
import { ownVersion } from '../../src/base/own-version.ts'
import type { Installation } from '../../src/cluster/install/installation.ts'
import { clusterManifests } from '../../src/cluster/install/manifests.ts'
import { nodeInstallers } from '../../src/cluster/install/nodes.ts'

/** Stand for values while the objects are made. */
const placeholder = {
  namespace: 'placeholder-namespace',
  image: 'placeholder/image:0',
  apiServer: '192.0.2.1/32',
  ops: '192.0.2.2/32',
  clientCa: 'placeholder-client-ca',
  server: 'https://placeholder-server',
}

const usual: Installation = {
  name: 'nodehub-cluster',
  namespace: 'nodehub-system',
  image: `nodehub:${ownVersion()}`,
  podHostNetwork: false,
}

const withPlaceholders: Installation = {
  ...usual,
  namespace: placeholder.namespace,
  image: placeholder.image,
  apiServerCidrs: [placeholder.apiServer],
  opsCidrs: [placeholder.ops],
  clientCa: placeholder.clientCa,
}

interface ApiDocument {
  readonly kind: string
  readonly metadata: object
}

const yaml = (document: object): string =>
  stringify(document, { lineWidth: 0, aliasDuplicateObjects: false })

/** The files of both, by their paths below this folder. */
export const clusterPackages = (): Readonly<Record<string, string>> => ({
  'chart/Chart.yaml': yaml({
    apiVersion: 'v2',
    name: 'nodehub-cluster',
    description: "The cluster's side of nodehub: NodePools, admission and their controller",
    type: 'application',
    version: ownVersion(),
    appVersion: ownVersion(),
    kubeVersion: '>=1.30.0-0',
  }),
  'chart/values.yaml': values,
  'chart/values.schema.json': `${JSON.stringify(schema, undefined, 2)}\n`,
  'chart/templates/cluster.yaml': template(),
  'chart/templates/nodes.yaml': nodesTemplate(),
  'kustomize/kustomization.yaml': yaml({
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: ['cluster.yaml'],
  }),
  'kustomize/cluster.yaml': clusterManifests(usual).map(yaml).join('---\n'),
  'kustomize/nodes/kustomization.yaml': yaml({
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: ['nodes.yaml'],
  }),
  'kustomize/nodes/nodes.yaml': nodeInstallers({ namespace: 'kube-system', image: usual.image })
    .map(yaml)
    .join('---\n'),
})

const values = `# Each is the flag of the same meaning of nodehub manifests --part cluster.
image: ${usual.image}
# Whether pods of host-network pools are put on the host network when they are created.
podHostNetwork: false
# From where API servers reach the webhooks; none: from anywhere.
apiServerCidrs: []
# From where Prometheus reaches health and metrics; none: from anywhere.
opsCidrs: []
# A ConfigMap whose ca.crt vouches for the client certificates of API servers; none: they need none.
clientCaConfigMap: ""
# The DaemonSets of nodehub manifests --part nodes: hubs on nodes with the label nodehub.io/hub.
nodes:
  enabled: false
  # One whose Pod Security admits pods on the host's network with the root of the host.
  namespace: kube-system
  # API servers of the hubs, with commas between; none: that of each kubelet.
  serverAddr: ""
`

const cidrs = { type: 'array', items: { type: 'string', pattern: '^[0-9a-fA-F.:]+/[0-9]+$' } }

const schema = {
  $schema: 'https://json-schema.org/draft-07/schema#',
  type: 'object',
  additionalProperties: false,
  required: ['image'],
  properties: {
    global: { type: 'object' },
    image: { type: 'string', minLength: 1 },
    // Without effect: accepted for one release, for values files of 0.2.0.
    admission: { enum: ['webhooks', 'policies'] },
    podHostNetwork: { type: 'boolean' },
    apiServerCidrs: cidrs,
    opsCidrs: cidrs,
    clientCaConfigMap: { type: 'string', pattern: '^[a-z0-9.-]*$' },
    nodes: {
      type: 'object',
      additionalProperties: false,
      properties: {
        enabled: { type: 'boolean' },
        namespace: { type: 'string', minLength: 1 },
        serverAddr: { type: 'string', pattern: '^(https?://[^ ,]+(,https?://[^ ,]+)*)?$' },
      },
    },
  },
}

/** The variants of the objects, with the condition of each in the language of templates. */
const variants = () =>
  [false, true].map((podHostNetwork) => ({
    condition: `eq .Values.podHostNetwork ${podHostNetwork}`,
    documents: documentsOf({ ...withPlaceholders, podHostNetwork }),
  }))

/** The objects as templates; Helm makes the namespace. */
const documentsOf = (installation: Installation): readonly string[] =>
  (clusterManifests(installation) as readonly ApiDocument[])
    .filter(({ kind }) => kind !== 'Namespace')
    .map((document) => withValues(yaml(kept(document)), document))

/** With the definition all NodePools would go. */
const kept = (document: ApiDocument): object =>
  document.kind === 'CustomResourceDefinition'
    ? {
        ...document,
        metadata: {
          ...document.metadata,
          annotations: { 'helm.sh/resource-policy': 'keep' },
        },
      }
    : document

function withValues(text: string, { kind }: ApiDocument): string {
  if (text.includes('{{')) throw new Error(`${kind}: braces of its own would be a template`)
  return [
    (all: string) => all.replaceAll(placeholder.namespace, '{{ .Release.Namespace }}'),
    (all: string) => all.replaceAll(placeholder.image, '{{ .Values.image | quote }}'),
    (all: string) => withCidrs(all, placeholder.apiServer, 'apiServerCidrs'),
    (all: string) => withCidrs(all, placeholder.ops, 'opsCidrs'),
    (all: string) => (kind === 'Deployment' ? withClientCa(all) : all),
  ].reduce((all, change) => change(all), text)
}

/** A list of addresses; without any, the rule has no `from`. */
const withCidrs = (text: string, cidr: string, value: string): string =>
  text.replace(
    `    - from:\n        - ipBlock:\n            cidr: ${cidr}\n      ports:\n`,
    `    -
{{- with .Values.${value} }}
      from:
{{- range . }}
        - ipBlock:
            cidr: {{ . | quote }}
{{- end }}
{{- end }}
      ports:
`,
  )

/** The argument, the mount and the volume of the ConfigMap. */
function withClientCa(text: string): string {
  const only = (block: string): string =>
    `{{- with .Values.clientCaConfigMap }}\n${block}{{- end }}\n`
  return text
    .replace(/ +- --client-ca=.*\n/, only)
    .replace(/ {10}volumeMounts:\n(?: {12}.*\n)+/, only)
    .replace(/ {6}volumes:\n(?: {8}.*\n)+/, (block) =>
      only(block.replace(placeholder.clientCa, '{{ . }}')),
    )
}

/** Documents that every variant has stand once; others under the conditions of their variants. */
function template(): string {
  const all = variants()
  const isCommon = (text: string): boolean => all.every(({ documents }) => documents.includes(text))
  const joined = (texts: readonly string[]): string => texts.map((text) => `---\n${text}`).join('')
  const common = all[0]?.documents.filter(isCommon) ?? []
  const own = all.map(({ condition, documents }) => {
    const texts = documents.filter((text) => !isCommon(text))
    return `{{- if ${condition} }}\n${joined(texts)}{{- end }}\n`
  })
  return `${comment}${joined(common)}${own.join('')}`
}

/** The installers, as templates. */
function nodesTemplate(): string {
  const documents = nodeInstallers({
    namespace: placeholder.namespace,
    image: placeholder.image,
    serverAddresses: placeholder.server,
  }).map((document) =>
    yaml(document)
      .replaceAll(placeholder.namespace, '{{ .Values.nodes.namespace }}')
      .replace(
        / +- --server-addr=.*\n/,
        (line) =>
          `{{- with .Values.nodes.serverAddr }}\n${line.replace(placeholder.server, '{{ . }}')}{{- end }}\n`,
      )
      .replaceAll(`image: ${placeholder.image}`, 'image: {{ .Values.image | quote }}')
      .replaceAll(placeholder.image, '{{ .Values.image }}'),
  )
  const all = documents.map((text) => `---\n${text}`).join('')
  return `${comment}{{- if .Values.nodes.enabled }}\n${all}{{- end }}\n`
}

const comment =
  '{{- /* Written by packaging/cluster/main.ts from the objects of nodehub manifests. */}}\n'
