import { desiredNodePoolLabel, nodePoolLabel } from '../../api/kube/node-pool.ts'
import { all, any, labelOf, quoted } from './cel.ts'
import { propagatedPodConditions } from './conditions.ts'
import { isHostNetwork, podCreates } from './policies.ts'
import { mutating } from './policy.ts'
import { poolNameLabel, proposedDesiredLabel } from './propagation.ts'

const spec = 'object.spec'

const terms = `${spec}.?affinity.?nodeAffinity.?requiredDuringSchedulingIgnoredDuringExecution.?nodeSelectorTerms.orValue([])`

const expressionsOf = (term: string): string => `${term}.?matchExpressions.orValue([])`
const fieldsOf = (term: string): string => `${term}.?matchFields.orValue([])`

/** For each alternative, the only values that its requirements of this key allow. */
const onlyValues = (requirements: (term: string) => string, key: string): string => {
  const isThis = all(
    `e.key == ${quoted(key)}`,
    'e.operator == "In"',
    'e.?values.orValue([]).size() == 1',
    'e.values[0] != ""',
  )
  return `variables.alternatives.map(t, ${requirements('t')}.filter(e, ${isThis}).map(e, e.values[0]))`
}

/** The value that every alternative requires; '' where they differ, or there is none. */
const commonTo = (values: string): string =>
  `${values}.size() > 0 && ${values}.all(v, v.size() > 0 && v[0] == ${values}[0][0]) ? ${values}[0][0] : ""`

const names = [
  ...[desiredNodePoolLabel, proposedDesiredLabel, poolNameLabel].map((name) =>
    labelOf('object', name),
  ),
  `${spec}.?nodeSelector[?${quoted(nodePoolLabel)}].orValue("")`,
  // Lists are of one type, and the value of a variable is of any.
  'string(variables.poolRequired)',
]

const movesAPort = 'p.?hostPort.orValue(0) != 0 && p.hostPort != p.containerPort'

/** The obstacles of the webhook (see `onHostNetworkOfPool`). */
const couldRunSo = all(
  `${spec}.?hostUsers.orValue(true)`,
  `!has(${spec}.hostnameOverride)`,
  `${spec}.?os.?name.orValue("") != "windows"`,
  `!${spec}.?securityContext.?sysctls.orValue([]).exists(s, s.name.startsWith("net.") || s.name.startsWith("net/"))`,
  ...['containers', 'initContainers'].map(
    (member) =>
      `!${spec}.?${member}.orValue([]).exists(c, c.?ports.orValue([]).exists(p, ${movesAPort}))`,
  ),
)

/** A pod that names no pool is of the one in which its node is, as the pool's status has it. */
const isOfThisPool = any(
  all('variables.named.size() > 0', 'variables.named.all(n, n == params.metadata.name)'),
  all(
    'variables.named.size() == 0',
    'variables.node != ""',
    'variables.node in params.?status.?nodes.orValue([])',
  ),
)

/**
 * The webhook for pods on the network of their pool as a policy, evaluated once for each NodePool.
 * It warns of nothing.
 */
export const propagationAsPolicies: readonly object[] = mutating(
  {
    name: 'pod-network',
    matched: podCreates,
    withPools: true,
    conditions: [
      ...propagatedPodConditions,
      { name: 'is-host-network-pool', expression: `${isHostNetwork} == true` },
    ],
    variables: [
      [
        'alternatives',
        `${terms}.filter(t, ${any(`${expressionsOf('t')}.size() > 0`, `${fieldsOf('t')}.size() > 0`)})`,
      ],
      ['poolsRequired', onlyValues(expressionsOf, nodePoolLabel)],
      ['poolRequired', commonTo('variables.poolsRequired')],
      ['nodesRequired', onlyValues(fieldsOf, 'metadata.name')],
      ['nodeRequired', commonTo('variables.nodesRequired')],
      ['named', `[${names.join(', ')}].filter(n, n != "")`],
      ['node', `${spec}.?nodeName.orValue("") != "" ? ${spec}.nodeName : variables.nodeRequired`],
    ],
  },
  [
    `${all(isOfThisPool, couldRunSo)} ? [JSONPatch{op: "add", path: "/spec/hostNetwork", value: true}] : []`,
  ],
)
