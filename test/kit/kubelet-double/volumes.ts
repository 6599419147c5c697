import { createHash } from 'node:crypto'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import { at, type Client } from '../client.ts'
import { get, Stuck } from './requests.ts'

/** What a pod's volume was found to be. */
export interface Mounted {
  readonly claim: string
  readonly volume: string
  readonly attachment: string
}

/**
 * The name of the VolumeAttachment, which nobody tells a kubelet (kubernetes
 * pkg/volume/csi/csi_attacher.go).
 */
export const attachmentName = (handle: string, driver: string, nodeName: string): string =>
  `csi-${createHash('sha256').update(`${handle}${driver}${nodeName}`).digest('hex')}`

/** From a pod's claim to a volume that is attached: gets only, none of them watched. */
export async function mount(
  client: Client,
  nodeName: string,
  namespace: string,
  claimName: string,
): Promise<Mounted> {
  const claim = await get(
    client,
    `/api/v1/namespaces/${namespace}/persistentvolumeclaims/${claimName}`,
  )
  const volume = await get(
    client,
    `/api/v1/persistentvolumes/${at(claim, 'spec', 'volumeName') as string}`,
  )
  const csi = at(volume, 'spec', 'csi') as { driver: string; volumeHandle: string }
  const name = attachmentName(csi.volumeHandle, csi.driver, nodeName)
  const attachment = await get(client, `/apis/storage.k8s.io/v1/volumeattachments/${name}`)
  if (at(attachment, 'status', 'attached') !== true) throw new Stuck(`${name} is not attached`, 200)
  return { claim: uidOf(claim), volume: uidOf(volume), attachment: uidOf(attachment) }
}

const uidOf = (object: JsonObject): string => at(object, 'metadata', 'uid') as string
