import type { JsonObject } from '../../src/api/kube/json.ts'
import { fromProtobuf, toProtobuf } from '../../src/sandbox/protobuf.ts'
import { filteringNode, type FilteredKind } from '../upstream/filtered.ts'

interface ApiObject {
  metadata: {
    annotations?: Record<string, string>
    labels?: Record<string, string>
  }
  spec?: { type?: string; hostNetwork?: boolean }
  endpoints?: { nodeName?: string }[]
}

/**
 * What a filter does that decodes everything, edits the objects and encodes everything again; the
 * list it comes to.
 */
export function parseEditStringify(kind: FilteredKind, body: Buffer, inJson: boolean): Buffer {
  if (inJson) return Buffer.from(JSON.stringify(edited(kind, JSON.parse(body.toString()) as List)))
  const { gvk, object } = fromProtobuf(body)
  return toProtobuf(gvk, edited(kind, object as unknown as List) as unknown as JsonObject)
}

interface List {
  items: ApiObject[]
}

function edited(kind: FilteredKind, list: List): List {
  if (kind === 'services')
    return { ...list, items: list.items.filter((item) => !isDiscarded(item)) }
  for (const item of list.items) {
    if (kind === 'pods') item.spec = { ...item.spec, hostNetwork: true }
    else if (item.metadata.labels?.['kubernetes.io/service-name'] === 'near')
      item.endpoints = (item.endpoints ?? []).filter(({ nodeName }) => nodeName === filteringNode)
  }
  return list
}

const isDiscarded = ({ metadata, spec }: ApiObject): boolean =>
  metadata.annotations?.['svc.openyurt.io/discard'] === 'true' && spec?.type === 'LoadBalancer'
