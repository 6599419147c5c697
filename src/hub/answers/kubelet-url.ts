import { badRequest, StatusError } from '../../api/kube/status.ts'
import type { JsonObject } from '../../api/kube/json.ts'
import { listAt, textAt } from '../../api/kube/json-at.ts'
import { isTrue } from '../../api/request/request-info.ts'

/** The subresources of a pod that its kubelet serves. */
export const kubeletSubresources = new Set(['log', 'exec', 'attach', 'portforward'])

/**
 * The kubelet's path and query for a subresource of one of its pods, as an API server writes it
 * (k/k pkg/registry/core/pod/strategy.go). Throws the StatusError of an API server where the query
 * does not name one of the pod's containers.
 */
export function kubeletUrl(subresource: string, pod: JsonObject, query: URLSearchParams): string {
  const parameters = parametersOf(subresource, query)
  const root = `/${roots[subresource] ?? ''}`
  const named = [textAt(pod, 'metadata', 'namespace'), textAt(pod, 'metadata', 'name')]
  const path = subresource === 'portforward' ? named : [...named, containerOf(pod, query)]
  return `${[root, ...path.map(encodeURIComponent)].join('/')}?${parameters}`
}

const roots: Readonly<Record<string, string>> = {
  log: 'containerLogs',
  exec: 'exec',
  attach: 'attach',
  portforward: 'portForward',
}

const logFlags = ['follow', 'previous', 'timestamps'] as const
const logValues = ['sinceSeconds', 'sinceTime', 'tailLines', 'limitBytes', 'stream'] as const
const streams = [
  ['stdin', 'input'],
  ['stdout', 'output'],
  ['stderr', 'error'],
  ['tty', 'tty'],
] as const

function parametersOf(subresource: string, query: URLSearchParams): URLSearchParams {
  const parameters = new URLSearchParams()
  if (subresource === 'portforward') {
    const ports = query.getAll('ports')
    if (ports.length > 0) parameters.set('port', ports.join(','))
  } else if (subresource === 'log') {
    for (const name of logFlags) if (isTrue(query.get(name))) parameters.set(name, 'true')
    for (const name of logValues) {
      const value = query.get(name)
      if (value !== null && value !== '') parameters.set(name, value)
    }
  } else {
    for (const [name, as] of streams) if (isTrue(query.get(name))) parameters.set(as, '1')
    for (const word of query.getAll('command')) parameters.append('command', word)
  }
  return parameters
}

/** The requested container, or the only one. */
function containerOf(pod: JsonObject, query: URLSearchParams): string {
  const name = textAt(pod, 'metadata', 'name')
  const names = (of: string): string[] =>
    listAt(pod, 'spec', of).map((each) => textAt(each, 'name'))
  const containers = names('containers')
  const all = [...names('initContainers'), ...containers, ...names('ephemeralContainers')]
  const requested = query.get('container') ?? ''
  if (requested !== '') {
    if (all.includes(requested)) return requested
    throw new StatusError(badRequest(`container ${requested} is not valid for pod ${name}`))
  }
  const [only] = containers
  if (only !== undefined && containers.length === 1) return only
  throw new StatusError(
    badRequest(
      `a container name must be specified for pod ${name}, choose one of: [${all.join(' ')}]`,
    ),
  )
}
