import { goJson } from '../../api/codec/json/write.ts'
import { isObject, type Json, type JsonObject } from '../../api/kube/json.ts'
import { listAt, textAt } from '../../api/kube/json-at.ts'
import { mediaType } from '../../api/kube/media-type.ts'
import type { BodyReply } from '../../http/exchange/exchange.ts'
import { answerHeaders } from './replies.ts'
import { metricsGroup, metricsVersion } from './resource-metrics.ts'

const groupVersion = `${metricsGroup}/${metricsVersion}`

/** The resources that the kubelet of this node can answer, as metrics-server describes them. */
const resources = [
  { name: 'nodes', kind: 'NodeMetrics', namespaced: false },
  { name: 'pods', kind: 'PodMetrics', namespaced: true },
] as const

const verbs = ['get', 'list']

/** The document of the group's version, for a kubectl that requests each group by itself. */
export const metricsResourcesPath = `/apis/${groupVersion}`

export const metricsResources = (): BodyReply => ({
  kind: 'body',
  from: 'hub',
  status: 200,
  headers: answerHeaders(mediaType('json')),
  body: bodyOf({
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion,
    resources: resources.map((each) => ({ ...each, singularName: '', verbs })),
  }),
})

/**
 * The document at `/apis` with the group of resource metrics, which kubectl looks for there before
 * `top`; unchanged where the cluster has the group.
 */
export function withMetricsGroup(reply: BodyReply): BodyReply {
  const document = parsed(reply.body)
  const kind = textAt(document, 'kind')
  const member = kind === 'APIGroupList' ? 'groups' : 'items'
  const groups = listAt(document, member)
  const isKnown = groups.some((each) =>
    [textAt(each, 'name'), textAt(each, 'metadata', 'name')].includes(metricsGroup),
  )
  const described = descriptions[kind]
  if (!document || !described || isKnown) return reply
  return { ...reply, body: bodyOf({ ...document, [member]: [...groups, described] }) }
}

const version = { groupVersion, version: metricsVersion }

/** By the kind of the document. */
const descriptions: Readonly<Record<string, JsonObject>> = {
  APIGroupList: { name: metricsGroup, versions: [version], preferredVersion: version },
  APIGroupDiscoveryList: {
    metadata: { name: metricsGroup },
    versions: [
      {
        version: metricsVersion,
        freshness: 'Current',
        resources: resources.map(({ name, kind, namespaced }) => ({
          resource: name,
          responseKind: { group: metricsGroup, version: metricsVersion, kind },
          scope: namespaced ? 'Namespaced' : 'Cluster',
          singularResource: '',
          verbs,
        })),
      },
    ],
  },
}

const bodyOf = (document: JsonObject): Buffer => Buffer.from(`${goJson(document)}\n`)

/** `undefined` for a document in another encoding. */
function parsed(body: Uint8Array): JsonObject | undefined {
  try {
    const document = JSON.parse(Buffer.from(body).toString()) as Json
    return isObject(document) ? document : undefined
  } catch {
    return undefined
  }
}
