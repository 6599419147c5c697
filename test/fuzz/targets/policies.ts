import { canonicalSpec } from '../../../src/api/codec/review.ts'
import { isList, isObject, type Json, type JsonObject } from '../../../src/api/kube/json.ts'
import { grantOf, policiesOf, questionFor, questionsOf } from '../../hub/authorization/generated.ts'
import { answerTo, authorizerOf } from '../../hub/authorization/policies.ts'
import type { Random } from '../random.ts'
import { Finding, pure, type Opening } from '../target.ts'

/**
 * A role and its binding with one value of a wrong type. Whatever it is, they allow no more than
 * the well-formed ones.
 */
const policies: Opening = pure('policy-rbac', (random) => {
  const formed = grantOf(random, 0)
  const at = random.below(formed.length)
  const spoiled = formed.with(at, spoil(random, formed[at] ?? {}) as JsonObject)
  const [before, after] = [authorizerOf(formed), authorizerOf(spoiled)]
  for (const spec of questionsOf(0)) {
    if (answerTo(after, spec) === 'allowed' && answerTo(before, spec) !== 'allowed') {
      const input = Buffer.from(JSON.stringify({ policy: spoiled[at] ?? null, spec }))
      throw new Finding('a malformed policy allows more', input)
    }
  }
  return 'taken'
})

/**
 * Specs of reviews, most with one value of a wrong type: refused, or no better than the whole, and
 * never recorded.
 */
const reviews: Opening = pure('policy-review', (random) => {
  const formed = policiesOf(random, 0)
  const authorize = authorizerOf(formed)
  const spec = questionFor(random, 0, formed)
  const spoiled = random.once(4) ? spec : (spoil(random, spec) as JsonObject)
  const answer = answerTo(authorize, spoiled)
  if (answer === 'allowed' && answerTo(authorize, spec) !== 'allowed') {
    throw new Finding('a malformed review is allowed', Buffer.from(JSON.stringify(spoiled)))
  }
  const canonical = canonicalSpec({ kind: 'SubjectAccessReview', spec: spoiled, status: {} })
  if (spoiled !== spec && canonical !== undefined) {
    throw new Finding('a malformed review is a question', Buffer.from(JSON.stringify(spoiled)))
  }
  return answer === 'refused' ? 'refused' : 'taken'
})

export const policyTargets: readonly Opening[] = [policies, reviews]

/** The value with one value in it, but not itself, of another type. */
function spoil(random: Random, value: Json): Json {
  const inner = isList(value) ? [...value.keys()] : isObject(value) ? Object.keys(value) : []
  if (inner.length === 0) return value
  const chosen = random.of<string | number>(inner)
  const spoiled = (each: Json): Json =>
    random.once(3) || !hasInner(each) ? random.of(ofOtherTypes(each)) : spoil(random, each)
  if (isList(value)) return value.with(Number(chosen), spoiled(value[Number(chosen)] ?? null))
  return { ...(value as JsonObject), [chosen]: spoiled((value as JsonObject)[chosen] ?? null) }
}

const hasInner = (value: Json): boolean =>
  typeof value === 'object' && value !== null && Object.keys(value).length > 0

const typeOf = (value: Json): string => (isList(value) ? 'list' : typeof value)

const values: readonly Json[] = [
  0,
  7,
  true,
  false,
  '*',
  'a',
  ['*'],
  [],
  { length: 1 },
  {},
  ['*', 5],
]

const ofOtherTypes = (value: Json): readonly Json[] =>
  values.filter((each) => typeOf(each) !== typeOf(value))
