import { clientConfig, type WebhookTarget } from '../target.ts'
import { poolVersions, schemaOf, storageVersion, type PoolVersion } from './node-pool-schema.ts'

export const conversionPath = '/convert'

/**
 * The CustomResourceDefinition of pools, in OpenYurt's three versions, converted by the webhook.
 */
export const poolDefinition = (target: WebhookTarget) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'nodepools.apps.openyurt.io' },
  spec: {
    group: 'apps.openyurt.io',
    scope: 'Cluster',
    names: {
      kind: 'NodePool',
      listKind: 'NodePoolList',
      plural: 'nodepools',
      singular: 'nodepool',
      shortNames: ['np'],
      categories: ['yurt'],
    },
    versions: poolVersions.map(versionOf),
    conversion: {
      strategy: 'Webhook',
      webhook: {
        conversionReviewVersions: ['v1'],
        clientConfig: clientConfig(target, conversionPath),
      },
    },
  },
})

const versionOf = (name: PoolVersion) => ({
  name,
  served: true,
  storage: name === storageVersion,
  ...(name === 'v1alpha1' && {
    deprecated: true,
    deprecationWarning:
      'apps.openyurt.io/v1alpha1 NodePool is deprecated: use apps.openyurt.io/v1beta2',
  }),
  schema: { openAPIV3Schema: schemaOf(name) },
  subresources: { status: {} },
  additionalPrinterColumns: [
    column('Type', 'string', '.spec.type', 'The type of nodepool'),
    column(
      'ReadyNodes',
      'integer',
      '.status.readyNodeNum',
      'The number of ready nodes in the pool',
    ),
    column('NotReadyNodes', 'integer', '.status.unreadyNodeNum'),
    ...(name === 'v1beta2'
      ? [
          column('LeaderNodes', 'integer', '.status.leaderNum', 'The leader node of the nodepool'),
          column(
            'LeaderElectionAge',
            'date',
            // OpenYurt's column reads .status.leaderElectionTime, which no pool has.
            '.status.leaderLastElectedTime',
            'The time when the leader yurthub is elected',
          ),
        ]
      : []),
    column('Age', 'date', '.metadata.creationTimestamp'),
  ],
})

const column = (name: string, type: string, jsonPath: string, description?: string) => ({
  name,
  type,
  jsonPath,
  ...(description !== undefined && { description }),
})
