import { Environment } from '@marcbachmann/cel-js'
import { clusterManifests } from '../../../src/cluster/install/manifests.ts'
import type { Json, JsonObject } from '../../../src/api/kube/json.ts'
import { listAt, objectAt, textAt } from '../../../src/api/kube/json-at.ts'
import { jsonPatch } from '../../../src/api/kube/patch/json-patch.ts'

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
        admission: 'policies',
        podHostNetwork: true,
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

/**
 * The object after all patches of a policy, one after the other. A JSONPatch is read as a map,
 * whose keys are variables: the library knows no types of API servers.
 */
export function patched(name: string, request: PolicyRequest): JsonObject {
  const { spec = null } = policyNamed(name)
  const keys = { op: 'op', path: 'path', value: 'value' }
  const given = { ...variablesOf(request), ...keys }
  const named: Record<string, unknown> = {}
  for (const each of listAt(spec, 'variables'))
    named[textAt(each, 'name')] = cel.evaluate(textAt(each, 'expression'), {
      ...given,
      variables: named,
    })
  let object = plain<JsonObject>(given.object)
  for (const each of listAt(spec, 'mutations')) {
    const expression = textAt(objectAt(each, 'jsonPatch'), 'expression')
    const asMaps = expression.replaceAll('JSONPatch{', '{')
    const patch = cel.evaluate(asMaps, { ...given, object, variables: named })
    object = jsonPatch(object, plain<Json>(patch))
  }
  return object
}

/** Whole numbers of CEL are bigints. */
const plain = <T>(value: unknown): T =>
  JSON.parse(
    JSON.stringify(value, (_, each: unknown) => (typeof each === 'bigint' ? Number(each) : each)),
  ) as T

export const pool = (name: string, hostNetwork = true) => ({
  metadata: { name },
  spec: { hostNetwork },
})
