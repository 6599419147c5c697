import type { Json } from '../../api/kube/json.ts'
import { textAt } from '../../api/kube/json-at.ts'
import { mediaType } from '../../api/kube/media-type.ts'
import { documentTypesOf } from '../../api/request/document-type.ts'
import { nodeIdentity } from '../../api/request/identity.ts'
import type { ObjectStore } from '../store/store.ts'

/**
 * The minor version of Kubernetes in the last answer of an API server to the node, as 36 for 1.36;
 * `undefined`: not known.
 */
export function recordedMinor(store: Pick<ObjectStore, 'document'>): number | undefined {
  const [representation] = documentTypesOf(mediaType('json'))
  const key = { identity: nodeIdentity, path: '/version' }
  const found = representation && store.document({ ...key, representation })
  if (!found) return undefined
  try {
    const version = JSON.parse(Buffer.from(found.body).toString()) as Json
    // Some distributions write `33+`.
    const minor = Number.parseInt(textAt(version, 'minor'), 10)
    return textAt(version, 'major') === '1' && !Number.isNaN(minor) ? minor : undefined
  } catch {
    return undefined
  }
}
