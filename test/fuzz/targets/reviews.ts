import { canonicalSpec } from '../../../src/api/codec/review.ts'
import { isList, isObject, type Json, type JsonObject } from '../../../src/api/kube/json.ts'
import type { Random } from '../random.ts'
import { Finding, pure, type Opening } from '../target.ts'

/** Specs of reviews, most with one value of a wrong type, which are never recorded. */
export const reviewTarget: Opening = pure('review', (random) => {
  const spec = specOf(random)
  const spoiled = random.once(4) ? spec : (spoil(random, spec) as JsonObject)
  const canonical = canonicalSpec({ kind: 'SubjectAccessReview', spec: spoiled, status: {} })
  if (spoiled !== spec && canonical !== undefined) {
    throw new Finding('a malformed review is a question', Buffer.from(JSON.stringify(spoiled)))
  }
  return canonical === undefined ? 'refused' : 'taken'
})

function specOf(random: Random): JsonObject {
  const about: JsonObject = random.once(4)
    ? { nonResourceAttributes: { verb: 'get', path: random.of(['/metrics', '/logs/a', '/']) } }
    : {
        resourceAttributes: {
          verb: random.of(['get', 'list', 'use']),
          group: random.of(['', 'apps']),
          resource: random.of(['pods', 'configmaps', 'deployments']),
          namespace: random.of(['', 'a']),
          ...(random.once(2) && { name: 'one' }),
          ...(random.once(3) && { subresource: 'log' }),
        },
      }
  return { user: random.of(['jane', 'robot']), groups: ['a', 'b'], ...about }
}

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
