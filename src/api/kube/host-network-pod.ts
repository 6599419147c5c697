import type { Json, JsonObject } from './json.ts'
import { listAt, objectAt, optionalTextAt, printed, textAt, valueAt } from './json-at.ts'

export interface HostPort {
  readonly port: number
  readonly protocol: string
}

/** A port as people and keys have it: `8080/TCP`. */
export const portName = ({ port, protocol }: HostPort): string => `${port}/${protocol}`

/** Init containers come last. */
const containersOf = (spec: Json | undefined): readonly Json[] => [
  ...listAt(spec, 'containers'),
  ...listAt(spec, 'initContainers'),
]

const probes = ['livenessProbe', 'readinessProbe', 'startupProbe']

/**
 * The ports that a pod takes on the host's network: those that its containers and init containers
 * declare, and those that its probes name by number. The scheduler and the kubelet know only the
 * former.
 */
export const portsOnHost = (spec: Json | undefined): readonly HostPort[] =>
  distinct(
    containersOf(spec).flatMap((container) => [
      ...listAt(container, 'ports').map(portOf),
      ...probes.flatMap((name) => probedPort(objectAt(container, name)) ?? []),
    ]),
  )

function portOf(declared: Json): HostPort {
  const protocol = optionalTextAt(declared, 'protocol') ?? 'TCP'
  return { port: Number(valueAt(declared, 'containerPort') ?? 0), protocol }
}

/** A probe of another host does not show a port of this pod; one of loopback probes the node. */
function probedPort(probe: JsonObject): HostPort | undefined {
  for (const action of ['httpGet', 'tcpSocket', 'grpc']) {
    const { port, host } = objectAt(probe, action)
    if (typeof port === 'number' && (!host || isLoopback(host))) return { port, protocol: 'TCP' }
  }
  return undefined
}

const isLoopback = (host: Json): boolean =>
  typeof host === 'string' && /^(?:localhost|127\.[\d.]+|\[?::1\]?)$/i.test(host)

const distinct = (ports: readonly HostPort[]): readonly HostPort[] => [
  ...new Map(ports.filter(({ port }) => port > 0).map((port) => [portName(port), port])).values(),
]

/** Why a pod must not be put on the host's network without its own request. */
export interface Obstacle {
  readonly reason: string
  readonly message: string
}

/**
 * What in a pod makes it unfit for the host's network, or harmful there; `undefined`: nothing. The
 * spec is that of the API, without hostNetwork.
 */
export function obstacleIn(spec: Json | undefined): Obstacle | undefined {
  for (const container of [...containersOf(spec), ...listAt(spec, 'ephemeralContainers')]) {
    const found = obstacleInContainer(container)
    if (found) return found
  }
  // The kubelet refuses them together with hostNetwork (pkg/kubelet/sysctl/allowlist.go).
  const [sysctl] = listAt(spec, 'securityContext', 'sysctls')
    .map((each) => textAt(each, 'name'))
    .filter((name) => /^net[./]/.test(name))
  if (sysctl !== undefined) {
    const message = `it sets the sysctl ${sysctl}, which would change the network of the node`
    return { reason: 'NetworkSysctl', message }
  }
  if (valueAt(spec, 'hostUsers') === false) {
    const message = 'it has a user namespace of its own (hostUsers: false)'
    return { reason: 'UserNamespace', message: `${message}, which excludes the host's network` }
  }
  const runtime = textAt(spec, 'runtimeClassName')
  // Only runtimes with a kernel of their own declare memory for it.
  if (virtualMachines.test(runtime) || Object.keys(objectAt(spec, 'overhead')).length > 0) {
    const message = `its runtime class ${runtime} runs it on a kernel of its own, without the host's network`
    return { reason: 'VirtualMachine', message }
  }
  return undefined
}

const virtualMachines =
  /kata|firecracker|cloud-hypervisor|qemu|gvisor|runsc|(^|[^a-z])vm([^a-z]|$)/i

function obstacleInContainer(container: Json): Obstacle | undefined {
  const name = textAt(container, 'name')
  const security = objectAt(container, 'securityContext')
  if (security['privileged'] === true) {
    const message = `container ${name} is privileged, and could change the network of the node`
    return { reason: 'PrivilegedContainer', message }
  }
  const gained = listAt(security, 'capabilities', 'add').find(
    (each) => typeof each === 'string' && /^(CAP_)?(NET_ADMIN|ALL)$/i.test(each),
  )
  if (typeof gained === 'string') {
    const message = `container ${name} has the capability ${gained}, with which the injectors of service meshes would redirect the traffic of the node`
    return { reason: 'NetworkAdministrator', message }
  }
  const mapped = listAt(container, 'ports').find((port) => {
    const hostPort = Number(valueAt(port, 'hostPort') ?? 0)
    return hostPort !== 0 && hostPort !== Number(valueAt(port, 'containerPort') ?? 0)
  })
  if (mapped === undefined) return undefined
  const [from, to] = ['hostPort', 'containerPort'].map((field) => printed(valueAt(mapped, field)))
  const message = `container ${name} maps port ${from} of the host to its port ${to}, which needs a pod network`
  return { reason: 'HostPortDiffers', message }
}
