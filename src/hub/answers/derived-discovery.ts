import { goJson } from '../../api/codec/json/write.ts'
import { apiVersionOf } from '../../api/kube/gvk.ts'
import type { Json, JsonObject } from '../../api/kube/json.ts'
import { listAt, optionalObjectAt, textAt, valueAt } from '../../api/kube/json-at.ts'
import { mediaType } from '../../api/kube/media-type.ts'
import { documentTypesOf } from '../../api/request/document-type.ts'
import type { BodyReply, Exchange } from '../../http/exchange/exchange.ts'
import type { ObjectStore } from '../store/store.ts'
import { answerHeaders } from './replies.ts'
import { withAge } from './staleness.ts'

const [json] = documentTypesOf(mediaType('json'))

/** Discovery of all groups in one document. */
const aggregatedTypes = documentTypesOf(
  ['v2', 'v2beta1']
    .map((v) => `${mediaType('json')};g=apidiscovery.k8s.io;v=${v};as=APIGroupDiscoveryList`)
    .join(),
)

const pathOfVersion = /^\/(?:api|apis\/(?<group>[^/]+))\/(?<version>[^/]+)$/

/**
 * The resources of one group and version, from the recorded discovery of all of them: a kubectl
 * that does not know the aggregated document of its API server requests each group by itself.
 * `undefined` where the request is for another document, or the resources are not known.
 */
export function resourcesFromAggregated(
  { identity, info, headers }: Exchange,
  store: ObjectStore,
): BodyReply | undefined {
  const { group = '', version } = pathOfVersion.exec(info.path)?.groups ?? {}
  if (version === undefined || !json) return undefined
  if (!documentTypesOf(headers.get('accept')).includes(json)) return undefined
  const path = group === '' ? '/api' : '/apis'
  const documents = aggregatedTypes.flatMap((representation) => {
    const found = store.document({ identity, path, representation })
    return found ? [found] : []
  })
  for (const { body, confirmedAt } of documents) {
    const described = listAt(parsed(body), 'items')
      .filter((each) => textAt(each, 'metadata', 'name') === group)
      .flatMap((each) => listAt(each, 'versions'))
      .find((each) => textAt(each, 'version') === version)
    if (described === undefined) continue
    const groupVersion = apiVersionOf({ group, version })
    const resources = listAt(described, 'resources').flatMap((each) =>
      resourcesOf(each, { group, version }),
    )
    // API servers leave the version out of the document of the core group.
    const type = { kind: 'APIResourceList', ...(group !== '' && { apiVersion: 'v1' }) }
    const list = { ...type, groupVersion, resources }
    return {
      kind: 'body',
      from: 'cache',
      status: 200,
      headers: withAge(answerHeaders(mediaType('json')), confirmedAt),
      body: Buffer.from(`${goJson(list)}\n`),
    }
  }
  return undefined
}

interface GroupVersion {
  readonly group: string
  readonly version: string
}

/** A resource and its subresources: the reverse of what client-go makes of the document. */
function resourcesOf(resource: Json, of: GroupVersion): JsonObject[] {
  const name = textAt(resource, 'resource')
  const namespaced = textAt(resource, 'scope') === 'Namespaced'
  const described = (each: Json, own: string, singularName: string): JsonObject[] => {
    // Resources without a kind are for other clients than these.
    const kind = optionalObjectAt(each, 'responseKind')
    if (!kind) return []
    const [group, version] = [textAt(kind, 'group'), textAt(kind, 'version')]
    const isOther = version !== '' && (group !== of.group || version !== of.version)
    return [
      {
        name: own,
        singularName,
        namespaced,
        ...(isOther && { group, version }),
        kind: textAt(kind, 'kind'),
        verbs: listAt(each, 'verbs'),
        ...optional(each, 'shortNames'),
        ...optional(each, 'categories'),
      },
    ]
  }
  return [
    ...described(resource, name, textAt(resource, 'singularResource')),
    ...listAt(resource, 'subresources').flatMap((each) =>
      described(each, `${name}/${textAt(each, 'subresource')}`, ''),
    ),
  ]
}

function optional(resource: Json, member: string): JsonObject {
  const value = valueAt(resource, member)
  return value === undefined ? {} : { [member]: value }
}

function parsed(body: Uint8Array): Json {
  try {
    return JSON.parse(Buffer.from(body).toString()) as Json
  } catch {
    return null
  }
}
