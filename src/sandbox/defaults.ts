import type { JsonObject } from '../api/kube/json.ts'
import { listAt, objectAt, optionalTextAt, textAt, valueAt, withAt } from '../api/kube/json-at.ts'
import type { Kind } from './kinds.ts'

/** Of the defaults that kube-apiserver sets on creation those that clients on nodes go by. */
export function defaulted({ custom, gvr: { group, resource } }: Kind, object: JsonObject) {
  return (custom ? undefined : fillers[`${group}/${resource}`])?.(object) ?? object
}

const fillers: Readonly<Record<string, (object: JsonObject) => JsonObject>> = {
  '/pods': pod,
  '/services': service,
  '/secrets': (secret) => ({ type: 'Opaque', ...secret }),
  '/namespaces': (namespace) => ({ ...namespace, status: { phase: 'Active' } }),
}

function pod(given: JsonObject): JsonObject {
  const account = textAt(given, 'spec', 'serviceAccountName') || 'default'
  const spec = {
    restartPolicy: 'Always',
    serviceAccountName: account,
    serviceAccount: account,
    ...objectAt(given, 'spec'),
  }
  return { ...given, spec, status: { phase: 'Pending' } }
}

function service(given: JsonObject): JsonObject {
  const type = optionalTextAt(given, 'spec', 'type') ?? 'ClusterIP'
  const spec = { type, ...addressesOf(given, type), ...objectAt(given, 'spec') }
  const ports = listAt(spec, 'ports').map((port) => ({
    protocol: 'TCP',
    targetPort: valueAt(port, 'port') ?? 0,
    ...objectAt(port),
  }))
  return withAt(
    { ...given, spec, status: { loadBalancer: {} } },
    ['spec', 'ports'],
    ports.length === 0 ? undefined : ports,
  )
}

function addressesOf(service: JsonObject, type: string): JsonObject {
  if (type === 'ExternalName') return {}
  const clusterIP = optionalTextAt(service, 'spec', 'clusterIP') ?? nextClusterIp()
  return { clusterIP, clusterIPs: [clusterIP] }
}

let lastClusterIp = 10

/** An address of 10.96.0.0/16 that was not handed out before. */
function nextClusterIp(): string {
  lastClusterIp = (lastClusterIp + 1) % 65_536
  return `10.96.${lastClusterIp >> 8}.${lastClusterIp & 255}`
}
