import type { JsonObject } from '../../../src/api/kube/json.ts'
import { at, type Client } from '../client.ts'
import { ask, get } from './requests.ts'
import { migratedPlugins, type Release } from './release.ts'

const path = '/apis/storage.k8s.io/v1/csinodes'
const annotation = 'storage.alpha.kubernetes.io/migrated-plugins'

/**
 * Finds or makes the CSINode, and writes down which plugins of this release have moved (kubernetes
 * pkg/volume/csi/nodeinfomanager). A kubelet waits for any answer but 200 and 404, and then has
 * some 140 seconds, after which it ends itself.
 */
export async function initialiseCsiNode(
  client: Client,
  release: Release,
  nodeName: string,
): Promise<JsonObject> {
  await ask(client, 'GET', `${path}/${nodeName}?resourceVersion=0`, { fine: [200, 404] })
  const found = await ask(client, 'GET', `${path}/${nodeName}`, { fine: [200, 404] })
  const annotations = { [annotation]: migratedPlugins(release) }
  if (found.status === 404) {
    const node = await get(client, `/api/v1/nodes/${nodeName}`)
    const owner = {
      apiVersion: 'v1',
      kind: 'Node',
      name: nodeName,
      uid: at(node, 'metadata', 'uid'),
    }
    const body = {
      kind: 'CSINode',
      apiVersion: 'storage.k8s.io/v1',
      metadata: { name: nodeName, annotations, ownerReferences: [owner as JsonObject] },
      spec: { drivers: [] },
    }
    return (await ask(client, 'POST', path, { body, fine: [201] })).object
  }
  if (at(found.object, 'metadata', 'annotations', annotation) === annotations[annotation]) {
    return found.object
  }
  return update(client, nodeName, {
    ...found.object,
    metadata: { ...(found.object['metadata'] as JsonObject), annotations },
  })
}

/** What a CSI driver does by registering at the kubelet. */
export async function registerDriver(
  client: Client,
  nodeName: string,
  driver: string,
): Promise<JsonObject> {
  const found = await get(client, `${path}/${nodeName}`)
  const drivers = (at(found, 'spec', 'drivers') ?? []) as readonly JsonObject[]
  if (drivers.some(({ name }) => name === driver)) return found
  const added = { name: driver, nodeID: nodeName, topologyKeys: [] }
  return update(client, nodeName, { ...found, spec: { drivers: [...drivers, added] } })
}

const update = async (client: Client, nodeName: string, body: JsonObject): Promise<JsonObject> =>
  (await ask(client, 'PUT', `${path}/${nodeName}`, { body })).object
