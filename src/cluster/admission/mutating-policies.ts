import {
  alwaysShared,
  desiredNodePoolLabel,
  hostNetworkLabel,
  nodePoolLabel,
  poolTypeLabel,
} from '../../api/kube/node-pool.ts'
import type { Installation } from '../install/installation.ts'
import { fieldsOf, poolVersions, storageVersion } from '../crd/node-pool-schema.ts'
import { previousAttributesAnnotation } from '../previous-attributes.ts'
import { escapeToken } from './json-patch.ts'
import { all, any, isCreate, labelOf, quoted } from './cel.ts'
import { excludedPodConditions, nodeConditions, poolDefaultConditions } from './conditions.ts'
import type { Actors } from './node.ts'
import { isHostNetwork, nodeCreates, nodeUpdates, podCreates, poolWrites } from './policies.ts'
import { mutating, validating } from './policy.ts'
import { propagationAsPolicies } from './propagation-policy.ts'
import { warningsAsPolicies } from './warning-policies.ts'

/**
 * The webhooks as policies, for API servers that have MutatingAdmissionPolicy v1 (`policyKinds`).
 * Besides the request, policies read NodePools only, as parameters; the nodes of a pool are those
 * in its status. Of lint's rules, those that need nothing else become warnings.
 */
export const webhooksAsPolicies = (
  actors: Actors,
  { podHostNetwork }: Pick<Installation, 'podHostNetwork'>,
): readonly object[] => [
  ...poolPolicies,
  ...nodePolicies(actors),
  ...podPolicies,
  ...(podHostNetwork ? propagationAsPolicies : []),
  ...warningsAsPolicies(podHostNetwork),
]

// One patch each. A JSONPatch's value is of any type, lists and maps in CEL are of one: hence
// `dyn`.

const put = (path: string, value: string): string =>
  `JSONPatch{op: "add", path: ${path}, value: ${value}}`

const drop = (path: string): string => `JSONPatch{op: "remove", path: ${path}}`

const label = (name: string): string => quoted(`/metadata/labels/${escapeToken(name)}`)

const either = (condition: string, then: string, otherwise: string): string =>
  `(${condition}) ? (${then}) : (${otherwise})`

const list = (...items: readonly string[]): string => `[${items.join(', ')}]`

/** Puts `value` at the name in a map that may not be there yet. */
const putInMap = (parent: string, map: string, name: string, value: string): string =>
  either(
    `has(${parent}.${map})`,
    list(put(quoted(`/metadata/${map}/${escapeToken(name)}`), value)),
    list(put(quoted(`/metadata/${map}`), `{${quoted(name)}: ${value}}`)),
  )

const spec = 'object.?spec'
const typeOfPool = `${spec}.?type.orValue("") == "" ? "Edge" : object.spec.type`
const shared = `${spec}.?poolScopeMetadata.orValue([])`

/** Fields that the version of a write does not have keep their values. */
const keptForOlder = Object.keys(fieldsOf[storageVersion].spec).map((field) => {
  const lacking = poolVersions.filter((version) => !Object.hasOwn(fieldsOf[version].spec, field))
  const isLacking = `request.requestKind.version in [${lacking.map(quoted).join(', ')}]`
  const before = `oldObject.?spec.?${field}`
  return (
    lacking.length > 0 &&
    either(
      all(`!(${isCreate})`, isLacking),
      either(
        `${before}.hasValue()`,
        list(put(quoted(`/spec/${field}`), `${before}.value()`)),
        either(`${spec}.?${field}.hasValue()`, list(drop(quoted(`/spec/${field}`))), '[]'),
      ),
      '[]',
    )
  )
})

const poolPolicies = [
  ...mutating(
    {
      name: 'pool-defaults',
      matched: poolWrites,
      conditions: poolDefaultConditions,
      variables: [
        ['type', typeOfPool],
        ['replicas', `${spec}.?leaderReplicas.orValue(0)`],
        ['strategy', `${spec}.?leaderElectionStrategy.orValue("")`],
      ],
    },
    [
      // The patches below need a spec.
      either('has(object.spec)', '[]', list(put(quoted('/spec'), '{"type": "Edge"}'))),
      ...[
        list(put(quoted('/spec/type'), 'variables.type')),
        putInMap('object.metadata', 'labels', poolTypeLabel, 'variables.type.lowerAscii()'),
        either(
          'variables.strategy == ""',
          list(put(quoted('/spec/leaderElectionStrategy'), '"random"')),
          '[]',
        ),
        either('variables.replicas > 0', '[]', list(put(quoted('/spec/leaderReplicas'), '1'))),
        either(
          `has(object.spec.poolScopeMetadata)`,
          '[]',
          list(put(quoted('/spec/poolScopeMetadata'), '[]')),
        ),
        ...alwaysShared.map(({ group, version, resource }) =>
          either(
            `${shared}.exists(each, each.group == ${quoted(group)} && each.version == ${quoted(version)} && each.resource == ${quoted(resource)})`,
            '[]',
            list(
              put(
                quoted('/spec/poolScopeMetadata/-'),
                `{"group": ${quoted(group)}, "version": ${quoted(version)}, "resource": ${quoted(resource)}}`,
              ),
            ),
          ),
        ),
      ].map((patch) => either(isCreate, patch, '[]')),
      ...keptForOlder.filter((patch) => patch !== false),
      either(
        isCreate,
        '[]',
        either(
          'has(oldObject.status)',
          list(put(quoted('/status'), 'oldObject.status')),
          either('has(object.status)', list(drop(quoted('/status'))), '[]'),
        ),
      ),
    ],
  ),
  ...validating({ name: 'pool-deletion', matched: { ...poolWrites, operations: ['DELETE'] } }, [
    {
      expression: 'oldObject.?status.?nodes.orValue([]).size() == 0',
      message: 'nodes are in the pool: take them out of it or delete them first',
      reason: 'Forbidden',
    },
  ]),
]

/** The pool that a new node is to be in. */
const poolOfNew = either(
  `${labelOf('object', nodePoolLabel)} != ""`,
  labelOf('object', nodePoolLabel),
  labelOf('object', desiredNodePoolLabel),
)

/** The desired pool counts in the request that sets it. */
const wish = either(
  all(
    `${labelOf('object', desiredNodePoolLabel)} != ${labelOf('oldObject', desiredNodePoolLabel)}`,
    `${labelOf('oldObject', nodePoolLabel)} == ""`,
  ),
  labelOf('object', desiredNodePoolLabel),
  '""',
)

/** As the controller writes it (see `writePrevious`). */
const memory = (labelled: string): string =>
  `"{\\"nodePool\\":\\"" + params.metadata.name + "\\",\\"hostNetwork\\":" + string(${isHostNetwork}) + ${labelled} + "}"`

const nodePolicies = (actors: Actors): readonly object[] => [
  ...mutating(
    {
      name: 'node-wish',
      matched: { ...nodeUpdates, operations: ['CREATE', 'UPDATE'] },
      conditions: nodeConditions(actors),
      variables: [['wish', either(isCreate, labelOf('object', desiredNodePoolLabel), wish)]],
    },
    [
      either(
        all(`${labelOf('object', nodePoolLabel)} == ""`, 'variables.wish != ""'),
        list(put(label(nodePoolLabel), 'variables.wish')),
        '[]',
      ),
    ],
  ),
  ...mutating(
    {
      name: 'node-without-pool',
      matched: nodeCreates,
      conditions: [
        { name: 'is-in-no-pool', expression: `(${poolOfNew}) == ""` },
        {
          name: 'has-the-label',
          expression: `${labelOf('object', hostNetworkLabel)} != ""`,
        },
      ],
    },
    [list(drop(label(hostNetworkLabel)))],
  ),
  ...mutating(
    {
      name: 'node-in-pool',
      matched: nodeCreates,
      withPools: true,
      conditions: [{ name: 'is-its-pool', expression: `(${poolOfNew}) == params.metadata.name` }],
    },
    [
      either(
        isHostNetwork,
        list(put(label(hostNetworkLabel), '"true"')),
        either(
          `${quoted(hostNetworkLabel)} in object.metadata.?labels.orValue({})`,
          list(drop(label(hostNetworkLabel))),
          '[]',
        ),
      ),
      putInMap(
        'object.metadata',
        'annotations',
        previousAttributesAnnotation,
        memory(`(${isHostNetwork} ? ",\\"labelled\\":true" : "")`),
      ),
    ],
  ),
  ...mutating(
    {
      name: 'node-memory',
      matched: nodeUpdates,
      withPools: true,
      conditions: [
        ...nodeConditions(actors),
        { name: 'concerns-this-pool', expression: concernsThisPool },
        { name: 'remembers-nothing', expression: remembersNothing },
      ],
    },
    [putInMap('object.metadata', 'annotations', previousAttributesAnnotation, memory('""'))],
  ),
]

/**
 * The pool of the node after the change: that of its label or, since policies run in no order, the
 * desired pool that the same request sets.
 */
const poolAfter = `(${either(
  `${labelOf('object', nodePoolLabel)} != ""`,
  labelOf('object', nodePoolLabel),
  wish,
)})`

/** The pool that the node leaves or, if it was in none, enters. */
const concernsThisPool = all(
  `${poolAfter} != ${labelOf('oldObject', nodePoolLabel)}`,
  `params.metadata.name == (${either(
    `${labelOf('oldObject', nodePoolLabel)} != ""`,
    labelOf('oldObject', nodePoolLabel),
    poolAfter,
  )})`,
)

/**
 * An annotation that is there without a memory of the kind is yurt-manager's, and the controller's
 * to complete.
 */
const remembersNothing = `!(${quoted(previousAttributesAnnotation)} in object.metadata.?annotations.orValue({}))`

const required = '/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution'

const condition = `{"key": dyn(${quoted(hostNetworkLabel)}), "operator": dyn("NotIn"), "values": dyn(["true"])}`
const selector = `{"nodeSelectorTerms": [{"matchExpressions": [${condition}]}]}`

const podPolicies = mutating(
  {
    name: 'excluded-pods',
    matched: podCreates,
    conditions: excludedPodConditions,
  },
  [
    either(
      'has(object.spec.affinity)',
      either(
        'has(object.spec.affinity.nodeAffinity)',
        either(
          'has(object.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution)',
          inEachTerm(),
          list(put(quoted(required), selector)),
        ),
        list(
          put(
            quoted('/spec/affinity/nodeAffinity'),
            `{"requiredDuringSchedulingIgnoredDuringExecution": ${selector}}`,
          ),
        ),
      ),
      list(
        put(
          quoted('/spec/affinity'),
          `{"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ${selector}}}`,
        ),
      ),
    ),
  ],
)

function inEachTerm(): string {
  const says = all(
    `e.key == ${quoted(hostNetworkLabel)}`,
    'e.operator == "NotIn"',
    'e.?values.orValue([]) == ["true"]',
  )
  const expressions = 't.?matchExpressions.orValue([])'
  const isToSay = all(
    any(`${expressions}.size() > 0`, 't.?matchFields.orValue([]).size() > 0'),
    `!${expressions}.exists(e, ${says})`,
  )
  const path = `${quoted(`${required}/nodeSelectorTerms/`)} + string(i)`
  const patch = either(
    `${expressions}.size() > 0`,
    put(`${path} + "/matchExpressions/-"`, `dyn(${condition})`),
    put(`${path} + "/matchExpressions"`, `dyn([${condition}])`),
  )
  return `object.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.transformList(i, t, ${isToSay}, ${patch})`
}
