import t from 'tap'
import type { FilterDefinition, FilterRule } from '../../../src/hub/filter/filter.ts'
import { RuleMatcher } from '../../../src/hub/filter/rule-matcher.ts'
import type { ResourceVerb } from '../../../src/api/request/request-info.ts'

const services = { group: '', version: 'v1', resource: 'services' }
const read: readonly ResourceVerb[] = ['get', 'list']

const filter = (name: string, rule: Partial<FilterRule> = {}): FilterDefinition => ({
  name,
  rules: [{ components: ['kube-proxy'], group: '', resources: ['services'], verbs: read, ...rule }],
  onError: 'pass',
  needs: [],
  create: () => undefined,
})

const named = (name: string) => ({ namespace: 'default', name, query: new URLSearchParams() })

void t.test('of one kind of request, filters for a named object match by name', async (t) => {
  const only = { namespace: 'default', name: 'kubernetes' }
  const standing = new RuleMatcher([filter('all'), filter('one', { only })], new Map())
  const namesFor = (name: string): string[] =>
    standing.match('kube-proxy', services, 'get', named(name)).map((each) => each.name)
  t.strictSame(namesFor('kubernetes'), ['all', 'one'])
  t.strictSame(namesFor('another'), ['all'])
  t.strictSame(namesFor('kubernetes'), ['all', 'one'], 'again')
})

void t.test('kinds of requests with similar names are not confused', async (t) => {
  const standing = new RuleMatcher([filter('a')], new Map([['a', new Set(['kube-proxy get'])]]))
  t.equal(standing.match('kube-proxy get', services, 'list', undefined).length, 1)
  const list = { ...services, resource: 'list services' }
  t.equal(standing.match('kube-proxy', list, 'get', undefined).length, 0)
  t.equal(standing.match('kube-proxy', services, 'get', undefined).length, 1)
  t.equal(standing.match('kube-proxy', services, 'watch', undefined).length, 0)
  t.equal(standing.match('kubelet', services, 'get', undefined).length, 0)
  const group = { ...services, group: 'example.org' }
  t.equal(standing.match('kube-proxy', group, 'get', undefined).length, 0)
})

void t.test('however many component names come, the match is right', async (t) => {
  const standing = new RuleMatcher([filter('a')], new Map())
  for (let i = 0; i < 2_000; i++) standing.match(`program-${i}`, services, 'get', undefined)
  t.equal(standing.match('kube-proxy', services, 'get', undefined).length, 1)
})
