import t from 'tap'
import type { Filter, FilterDefinition } from '../../../src/hub/filter/filter.ts'
import type { ApiObject } from '../../../src/api/kube/object.ts'
import { filtersOf } from '../../kit/inputs.ts'

const pods = { group: '', version: 'v1', resource: 'pods' }
const pod = { group: '', version: 'v1', kind: 'Pod' }

const define = (
  name: string,
  filter: Filter | undefined,
  rest: Partial<FilterDefinition> = {},
): FilterDefinition => ({
  name,
  rules: [{ components: ['kubelet'], group: '', resources: ['pods'], verbs: ['list'] }],
  onError: 'pass',
  needs: [],
  create: () => filter,
  ...rest,
})

function object(text: string, known: Partial<ApiObject> = {}): ApiObject {
  const bytes = Buffer.from(text)
  return { namespace: 'n', name: 'a', uid: 'u', resourceVersion: '1', bytes, ...known }
}

function chainOf(
  definitions: readonly FilterDefinition[],
  onFailure?: Parameters<typeof filtersOf>[2],
) {
  const chain = filtersOf(definitions, {}, onFailure).chainFor('kubelet', pods, 'list')
  if (!chain) throw new Error('no chain')
  return chain
}

const text = (shown: ApiObject | undefined): string | undefined =>
  shown && Buffer.from(shown.bytes).toString()

const append =
  (letter: string): Filter =>
  (cursor) => [{ op: 'set', path: ['x'], value: `${String(cursor.value(['x']) ?? '')}${letter}` }]

void t.test(
  'filters act in the order they are given, each on what the one before made',
  async (t) => {
    const definitions = ['b', 'a', 'c'].map((letter) => define(letter, append(letter)))
    const chain = chainOf(definitions)
    t.strictSame(chain.filters, ['b', 'a', 'c'])
    t.equal(text(chain.apply(pod, 'json', object('{}'))), '{"x":"bac"}')
  },
)

void t.test('an object that all filters leave is the same instance, with its bytes', async (t) => {
  const chain = chainOf([define('a', () => 'leave'), define('b', () => [])])
  const given = object('{ "x": 1 }')
  t.equal(chain.apply(pod, 'json', given), given)
})

void t.test('no filter runs after one that withholds', async (t) => {
  const chain = chainOf([
    define('a', () => 'withhold'),
    define('b', () => {
      t.fail('asked')
      return 'leave'
    }),
  ])
  t.equal(chain.apply(pod, 'json', object('{}')), undefined)
})

void t.test('a chain has exactly the filters with a rule for the request', async (t) => {
  const rule = { components: ['kubelet'], group: '', resources: ['pods'], verbs: ['list'] as const }
  const filters = filtersOf([
    define('lists', () => 'leave'),
    define('watches', () => 'leave', { rules: [{ ...rule, verbs: ['watch'] }] }),
    define('both', () => 'leave', { rules: [{ ...rule, verbs: ['list', 'watch'] }] }),
    define('two rules', () => 'leave', {
      rules: [
        { ...rule, components: ['kube-proxy'] },
        { ...rule, group: 'apps', resources: ['deployments'] },
      ],
    }),
  ])
  const deployments = { group: 'apps', version: 'v1', resource: 'deployments' }
  const names = (...asked: Parameters<typeof filters.chainFor>) =>
    filters.chainFor(...asked)?.filters
  t.strictSame(names('kubelet', pods, 'list'), ['lists', 'both'])
  t.strictSame(names('kubelet', pods, 'watch'), ['watches', 'both'])
  t.strictSame(names('kube-proxy', pods, 'list'), ['two rules'])
  t.strictSame(names('kubelet', deployments, 'list'), ['two rules'])
  t.equal(names('kubelet', pods, 'get'), undefined)
  t.equal(names('coredns', pods, 'list'), undefined)
  t.equal(names('kubelet', { ...pods, resource: 'services' }, 'list'), undefined)
  t.equal(names('kubelet', { ...pods, group: 'metrics.k8s.io' }, 'list'), undefined)
})

const broken: Filter = () => {
  throw new Error('broken')
}

void t.test('a filter’s onError decides about an object at which it fails', async (t) => {
  const failures: unknown[] = []
  const note = (filter: string, cause: unknown) => failures.push([filter, (cause as Error).message])
  const passing = chainOf([define('bad', broken), define('x', append('x'))], note)
  t.equal(text(passing.apply(pod, 'json', object('{}'))), '{"x":"x"}')
  const withholding = chainOf(
    [define('bad', broken, { onError: 'withhold' }), define('x', append('x'))],
    note,
  )
  t.equal(withholding.apply(pod, 'json', object('{}')), undefined)
  t.strictSame(failures, [
    ['bad', 'broken'],
    ['bad', 'broken'],
  ])
})

void t.test('an edit that cannot be made is a failure, and leaves the object whole', async (t) => {
  const failures: string[] = []
  const filter: Filter = () => [
    { op: 'set', path: ['x'], value: 1 },
    { op: 'set', path: ['metadata', 'name'], value: 'b' },
  ]
  const chain = chainOf([define('a', filter)], (name) => failures.push(name))
  const given = object('{}')
  t.equal(chain.apply(pod, 'json', given), given)
  t.strictSame(failures, ['a'])
})

void t.test('bytes that cannot be read are a failure of the filter that reads them', async (t) => {
  let failures = 0
  const chain = chainOf([define('a', append('x'), { onError: 'withhold' })], () => failures++)
  t.equal(chain.apply(pod, 'json', object('{"a"')), undefined)
  t.equal(chain.apply(pod, 'protobuf', object('x')), undefined)
  t.equal(failures, 2)
})

void t.test('a filter that keeps lengths in protobuf may change none', async (t) => {
  let failures = 0
  const named: Filter = () => [{ op: 'set', path: ['spec', 'nodeName'], value: 'edge' }]
  const chain = chainOf([define('a', named, { withholds: false, keepsLength: true })], () => {
    failures += 1
  })
  t.equal(chain.keepsLengths, true)
  const given = object('')
  t.equal(chain.apply(pod, 'protobuf', given), given)
  t.equal(failures, 1)
  t.equal(text(chain.apply(pod, 'json', object('{}'))), '{"spec":{"nodeName":"edge"}}')
})
