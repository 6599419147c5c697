import { Environment } from '@marcbachmann/cel-js'
import { clusterManifests } from '../../../src/cluster/install/manifests.ts'
import type { Json, JsonObject } from '../../../src/api/kube/json.ts'
import { listAt, textAt } from '../../../src/api/kube/json-at.ts'

/** What a field that may be missing is in CEL. */
interface Optional {
  readonly hasValue: () => boolean
  readonly value: () => unknown
}

const cel = new Environment({
  unlistedVariablesAreDyn: true,
  enableOptionalTypes: true,
  homogeneousAggregateLiterals: false,
})
  // An admission request, as far as policies read it.
  .registerOperator('optional == optional', (a: Optional, b: Optional) =>
    a.hasValue() && b.hasValue() ? a.value() === b.value() : a.hasValue() === b.hasValue(),
  )

const policies = (
  JSON.parse(
    JSON.stringify(
      clusterManifests({
        name: 'nodehub-cluster',
        namespace: 'nodehub-system',
        image: 'nodehub:1',
        podHostNetwork: false,
      }),
    ),
  ) as JsonObject[]
).filter(({ kind }) => textAt(kind).endsWith('AdmissionPolicy'))

/** What an API server is request to do, as far as policies look at it. */
export interface PolicyRequest {
  readonly operation?: 'CREATE' | 'UPDATE'
  readonly namespace?: string
  readonly username?: string
  readonly version?: string
  readonly object?: object
  readonly oldObject?: object
  readonly params?: object
}

function variablesOf(request: PolicyRequest) {
  const { operation = 'CREATE', namespace = 'default', username = 'kubelet' } = request
  return {
    request: {
      operation,
      namespace,
      userInfo: { username },
      requestKind: { version: request.version ?? 'v1' },
    },
    object: request.object ?? { metadata: {} },
    oldObject: request.oldObject ?? { metadata: {} },
    params: request.params ?? pool('p'),
  }
}

function policyNamed(name: string): JsonObject {
  const found = policies.find((each) => textAt(each, 'metadata', 'name') === `nodehub-${name}`)
  if (found === undefined) throw new Error(`there is no policy ${name}`)
  return found
}

/** The conditions that keep the API server from evaluating a policy. */
function untrue(name: string, list: string, request: PolicyRequest): Json[] {
  const policy = policyNamed(name)
  const variables = variablesOf(request)
  return listAt(policy, 'spec', list).filter(
    (each) => cel.evaluate(textAt(each, 'expression'), variables) !== true,
  )
}

/** The fields for which a policy refuses an object: messages up to their first colon. */
export const unmetConditions = (name: string, request: PolicyRequest): string[] =>
  untrue(name, 'matchConditions', request).map((each) => textAt(each, 'name'))

/** What of an object a policy refuses: messages up to their first colon. */
export const refusedFields = (name: string, request: PolicyRequest): string[] =>
  untrue(name, 'validations', request).map((each) => textAt(each, 'message').replace(/: .*/, ''))

export const pool = (name: string, hostNetwork = true) => ({
  metadata: { name },
  spec: { hostNetwork },
})
