import t from 'tap'
import { readObject } from '../../../src/api/codec/object.ts'
import { canonicalSpec, reviewIn, tokenOf, type Review } from '../../../src/api/codec/review.ts'
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

const canonical = (review: Review | undefined): string | undefined =>
  review && canonicalSpec(review)

const selector = {
  requirements: [{ key: 'spec.nodeName', operator: 'In', values: ['a'] }],
}
const resourceAttributes = {
  namespace: 'shop',
  verb: 'get',
  resource: 'pods',
  subresource: 'log',
  fieldSelector: selector,
}
const ofUser = {
  user: 'jane',
  groups: ['b', 'a'],
  extra: { scopes: ['x', 'y'], id: ['1'] },
  resourceAttributes,
}

const questions: readonly (readonly [string, JsonObject])[] = [
  ['SubjectAccessReview', ofUser],
  ['SubjectAccessReview', { user: 'jane', nonResourceAttributes: { path: '/', verb: 'get' } }],
  ['LocalSubjectAccessReview', ofUser],
  ['SelfSubjectAccessReview', { resourceAttributes }],
  ['TokenReview', { token: 't', audiences: ['b', 'a'] }],
]

void t.test('a review is equal in JSON and protobuf', async (t) => {
  for (const [kind, spec] of questions) {
    const text = canonical(inJson(kind, spec))
    t.type(text, 'string', kind)
    t.equal(canonical(inProtobuf(kind, spec)), text, kind)
  }
})

void t.test('equivalent specs have one canonical key', async (t) => {
  const same = canonical(inJson('SubjectAccessReview', ofUser))
  for (const spec of [
    { ...ofUser, groups: ['a', 'b', 'a'] },
    { ...ofUser, uid: '', nonResourceAttributes: null },
    { ...ofUser, extra: { id: ['1'], scopes: ['y', 'x'] } },
    { ...ofUser, resourceAttributes: { ...resourceAttributes, name: '', group: '' } },
  ]) {
    t.equal(canonical(inJson('SubjectAccessReview', spec)), same, JSON.stringify(spec))
  }
})

void t.test('specs that may differ have different keys', async (t) => {
  const same = canonical(inJson('SubjectAccessReview', ofUser))
  const others: readonly JsonObject[] = [
    { ...ofUser, user: 'bob' },
    { ...ofUser, uid: '1' },
    { ...ofUser, groups: ['a'] },
    { ...ofUser, groups: ['a', 'b', 'c'] },
    { ...ofUser, groups: ['a,b'] },
    { ...ofUser, extra: { id: ['1'] } },
    { user: 'jane', groups: ['a', 'b'], nonResourceAttributes: {} },
    { user: 'jane', groups: ['a', 'b'], resourceAttributes: {} },
    ...['namespace', 'verb', 'group', 'version', 'resource', 'subresource', 'name'].map((name) => ({
      ...ofUser,
      resourceAttributes: { ...resourceAttributes, [name]: 'other' },
    })),
    { ...ofUser, resourceAttributes: { ...resourceAttributes, fieldSelector: {} } },
    { ...ofUser, resourceAttributes: { ...resourceAttributes, labelSelector: selector } },
  ]
  const texts = others.map((spec) => canonical(inJson('SubjectAccessReview', spec)))
  t.equal(new Set([same, ...texts]).size, others.length + 1)
  t.notOk(texts.includes(undefined))
})

void t.test('a spec with an unknown member or of another type has no key', async (t) => {
  for (const spec of [
    { ...ofUser, scopes: ['x'] },
    { ...ofUser, groups: 'a' },
    { ...ofUser, groups: [1] },
    { ...ofUser, user: ['jane'] },
    { ...ofUser, extra: { id: '1' } },
    { ...ofUser, resourceAttributes: { ...resourceAttributes, scope: 'x' } },
    { ...ofUser, resourceAttributes: [] },
  ] as const) {
    t.equal(canonical(inJson('SubjectAccessReview', spec)), undefined, JSON.stringify(spec))
  }
})

void t.test('the token of a TokenReview is found, and other kinds have none', async (t) => {
  const review = inJson('TokenReview', { token: 'secret' })
  t.equal(review && tokenOf(review), 'secret')
  const other = inJson('SubjectAccessReview', ofUser)
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
