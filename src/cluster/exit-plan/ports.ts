import { isObject, type Json, type JsonObject } from '../../api/kube/json.ts'
import { listAt, objectAt, optionalTextAt, textAt, valueAt } from '../../api/kube/json-at.ts'

const lists = ['containers', 'initContainers'] as const

/**
 * The container lists of a pod on the host's network, with every port declared: `hostPort` as the
 * API server would fill it in for a pod (and not for a template), and the ports that probes name by
 * number. With `merge` the lists are whole; with `strategic` they have the changes alone. A list
 * without a change is left out.
 */
export function editedPorts(spec: JsonObject, type: 'strategic' | 'merge'): JsonObject {
  const declared = new Set(
    lists.flatMap((list) =>
      listAt(spec, list).flatMap((container) => listAt(container, 'ports').map(nameOf)),
    ),
  )
  const edited = lists.map((list) => {
    const containers = listAt(spec, list).filter(isObject)
    const changed = containers.map((container) => {
      const ports = portsOf(container, declared)
      return ports === undefined ? undefined : { container, ports }
    })
    if (changed.every((each) => each === undefined)) return [list, undefined] as const
    const whole = containers.map((container, at) => ({
      ...container,
      ...(changed[at] && { ports: changed[at].ports }),
    }))
    const parts = changed.flatMap((each) => (each ? [strategicPart(each)] : []))
    return [list, type === 'merge' ? whole : parts] as const
  })
  return Object.fromEntries(
    edited.flatMap(([list, value]) => (value === undefined ? [] : [[list, value]])),
  )
}

/** The ports of a container as they are to be; `undefined`: as they are. */
function portsOf(container: JsonObject, declared: Set<string>): readonly Json[] | undefined {
  const before = listAt(container, 'ports')
  const own = before.map((port) =>
    isObject(port) ? { ...port, hostPort: port['containerPort'] ?? 0 } : port,
  )
  const probed: JsonObject[] = []
  for (const port of probes.flatMap((name) => probedPort(objectAt(container, name)) ?? [])) {
    if (declared.has(`${port}/TCP`)) continue
    declared.add(`${port}/TCP`)
    probed.push({ containerPort: port, hostPort: port, protocol: 'TCP' })
  }
  const after = [...own, ...probed]
  const isSame =
    probed.length === 0 &&
    before.every((port) => valueAt(port, 'hostPort') === valueAt(port, 'containerPort'))
  return isSame ? undefined : after
}

/**
 * Strategic merge patches know a port by its `containerPort` alone: where two protocols share one,
 * the list is replaced.
 */
function strategicPart({
  container,
  ports,
}: {
  readonly container: JsonObject
  readonly ports: readonly Json[]
}): JsonObject {
  const name = textAt(container, 'name')
  const numbers = ports.map((port) => valueAt(port, 'containerPort'))
  if (new Set(numbers).size < numbers.length)
    return { name, ports: [{ $patch: 'replace' }, ...ports] }
  const parts = ports.map((port) => {
    const [containerPort, hostPort] = ['containerPort', 'hostPort'].map((member) =>
      valueAt(port, member),
    )
    const protocol = optionalTextAt(port, 'protocol') ?? 'TCP'
    return { containerPort: containerPort ?? 0, hostPort: hostPort ?? 0, protocol }
  })
  return { name, ports: parts }
}

/** `8080/TCP`. */
const nameOf = (port: Json): string =>
  `${Number(valueAt(port, 'containerPort') ?? 0)}/${optionalTextAt(port, 'protocol') ?? 'TCP'}`

const probes = ['livenessProbe', 'readinessProbe', 'startupProbe']

/** A probe of another host does not show a port of this pod; one of loopback probes the node. */
function probedPort(probe: JsonObject): number | undefined {
  for (const action of ['httpGet', 'tcpSocket', 'grpc']) {
    const { port, host } = objectAt(probe, action)
    if (typeof port === 'number' && port > 0 && (!host || isLoopback(host))) return port
  }
  return undefined
}

const isLoopback = (host: Json): boolean =>
  typeof host === 'string' && /^(?:localhost|127\.[\d.]+|\[?::1\]?)$/i.test(host)
