import type { HostNetworkReport, PodOnNode } from '../../hub/wiring/status/host-network-report.ts'
import type { StoppedNetworks } from '../../hub/wiring/stopped.ts'
import { aligned } from '../aligned.ts'
import { inspection } from './inspection.ts'
import { paragraphs } from './printed.ts'

/** Exit code 1: ports clash. */
export const hostNetwork = inspection<HostNetworkReport | StoppedNetworks>({
  ofStopped: true,
  read: (from) => from.report('host-network'),
  table: hostNetworkTable,
  code: ({ pods }) => (pods?.some(({ clashes }) => clashes.length > 0) ? 1 : 0),
})

/** The report on the pods of a host-network node, for people; problems come first. */
function hostNetworkTable({
  mode,
  pool,
  hostNetworkPool,
  pods,
}: HostNetworkReport | StoppedNetworks): string {
  const kind =
    hostNetworkPool === 'unknown'
      ? 'whether its pool is a host-network pool has never been known'
      : `its pool is ${hostNetworkPool ? 'a' : 'no'} host-network pool`
  const named = pool === undefined ? '' : ` (${pool})`
  const setting =
    mode === 'unknown' ? 'The hub is stopped' : `--host-network-propagation is ${mode}`
  const head = `${setting}; ${kind}${named}.\n`
  if (!pods) return `${head}The kubelet has never listed its pods here, or they cannot be read.\n`
  const clashes = pods.flatMap((pod) =>
    pod.clashes.map((clash) => [nameOf(pod), `${clash.port}/${clash.protocol}`, clash.with]),
  )
  const propagated = pods.filter(({ network }) => network === 'propagated')
  const own = hostNetworkPool === true ? pods.filter(({ network }) => network === 'pod') : []
  return paragraphs(
    head,
    propagated.length === 0
      ? "No pod is shown on the host's network that does not request it.\n"
      : '',
    aligned(['POD', 'PORT', 'CLASHES WITH'], clashes),
    aligned(
      ["SHOWN ON THE HOST'S NETWORK", 'PORTS'],
      propagated.map((pod) => [
        nameOf(pod),
        pod.ports.map(({ containerPort, protocol }) => `${containerPort}/${protocol}`).join(' '),
      ]),
    ),
    aligned(
      ['KEEPS A NETWORK OF ITS OWN'],
      own.map((pod) => [nameOf(pod)]),
    ),
  )
}

const nameOf = ({ namespace, name }: PodOnNode): string => `${namespace}/${name}`
