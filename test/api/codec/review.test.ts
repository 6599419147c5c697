import t from 'tap'
import { readObject } from '../../../src/api/codec/object.ts'
import { reviewIn, tokenOf, type Review } from '../../../src/api/codec/review.ts'
import type { Json, JsonObject } from '../../../src/api/kube/json.ts'
import { toProtobuf } from '../../../src/sandbox/protobuf.ts'

const groupOf = (kind: string): string =>
  kind === 'TokenReview' ? 'authentication.k8s.io' : 'authorization.k8s.io'

function inJson(kind: string, spec: Json): Review | undefined {
  const review = { kind, apiVersion: `${groupOf(kind)}/v1`, metadata: {}, spec }
  const body = Buffer.from(JSON.stringify(review))
  return reviewIn({ encoding: 'json', ...readObject('json', 'object', body) })
}

function inProtobuf(kind: string, spec: JsonObject): Review | undefined {
  const body = toProtobuf({ group: groupOf(kind), version: 'v1', kind }, { spec })
  return reviewIn({ encoding: 'protobuf', ...readObject('protobuf', 'object', body) })
}

const questions: readonly (readonly [string, JsonObject])[] = [
  ['SubjectAccessReview', { user: 'jane', nonResourceAttributes: { path: '/', verb: 'get' } }],
  ['LocalSubjectAccessReview', { user: 'jane', resourceAttributes: { verb: 'get' } }],
  ['SelfSubjectAccessReview', { resourceAttributes: { verb: 'get' } }],
  ['TokenReview', { token: 't', audiences: ['b', 'a'] }],
]

void t.test('a review is read in JSON and protobuf', async (t) => {
  for (const [kind, spec] of questions) {
    t.strictSame(inJson(kind, spec)?.spec, spec, kind)
    t.match(inProtobuf(kind, spec), { kind, spec })
  }
})

void t.test('what the hub does not know of a review is in its bytes', async (t) => {
  const [a, b] = ['x', 'y'].map((later) => inJson('SubjectAccessReview', { user: 'jane', later }))
  t.notSame(a?.bytes, b?.bytes)
})

void t.test('the token of a TokenReview is found, and other kinds have none', async (t) => {
  const review = inJson('TokenReview', { token: 'secret' })
  t.equal(review && tokenOf(review), 'secret')
  const other = inJson('SubjectAccessReview', { token: 'secret' })
  t.equal(other && tokenOf(other), '')
})

void t.test('another kind is no review, and damaged bytes are malformed', async (t) => {
  t.equal(inJson('SelfSubjectRulesReview', {}), undefined)
  t.equal(inJson('constructor', {}), undefined)
  const damaged = { namespace: '', name: '', uid: '', resourceVersion: '', bytes: Buffer.from('{') }
  const gvk = { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenReview' }
  for (const encoding of ['json', 'protobuf'] as const) {
    t.throws(() => reviewIn({ encoding, gvk, object: damaged }), { code: 'MALFORMED_BODY' })
  }
})
