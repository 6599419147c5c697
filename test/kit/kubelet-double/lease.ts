import type { JsonObject } from '../../../src/api/kube/json.ts'
import { at, type Client } from '../client.ts'
import { ask, get } from './requests.ts'

const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'

/**
 * Finds the lease or makes it, and renews it twice, each time on what the last answer gave
 * (component-helpers apimachinery/lease).
 */
export async function holdLease(client: Client, nodeName: string): Promise<JsonObject> {
  const path = `${leases}/${nodeName}?timeout=10s`
  const found = await ask(client, 'GET', path, { fine: [200, 404] })
  let lease = found.object
  if (found.status === 404) {
    const node = await get(client, `/api/v1/nodes/${nodeName}?timeout=10s`)
    const owner = {
      apiVersion: 'v1',
      kind: 'Node',
      name: nodeName,
      uid: at(node, 'metadata', 'uid'),
    }
    const metadata = {
      name: nodeName,
      namespace: 'kube-node-lease',
      ownerReferences: [owner as JsonObject],
    }
    const body = renewed(
      { kind: 'Lease', apiVersion: 'coordination.k8s.io/v1', metadata },
      nodeName,
    )
    lease = (await ask(client, 'POST', `${leases}?timeout=10s`, { body, fine: [201] })).object
  }
  for (let times = 0; times < 2; times++) {
    lease = (await ask(client, 'PUT', path, { body: renewed(lease, nodeName) })).object
  }
  return lease
}

const renewed = (lease: JsonObject, holderIdentity: string): JsonObject => ({
  ...lease,
  spec: {
    holderIdentity,
    leaseDurationSeconds: 40,
    renewTime: new Date().toISOString().replace(/Z$/, '000Z'),
  },
})
