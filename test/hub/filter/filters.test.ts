import { parseRequestInfo } from '../../../src/api/request/request-info.ts'
import t from 'tap'
import type { FilterDefinition } from '../../../src/hub/filter/filter.ts'
import { filtersOf } from '../../kit/inputs.ts'

const services = { group: '', version: 'v1', resource: 'services' }
const service = { group: '', version: 'v1', kind: 'Service' }

const object = {
  namespace: 'n',
  name: 'a',
  uid: 'u',
  resourceVersion: '1',
  bytes: Buffer.from('{"metadata":{"name":"a"}}'),
}

const rule = { components: ['kube-proxy'], group: '', resources: ['services'] }

const define = (rest: Partial<FilterDefinition> = {}): FilterDefinition => ({
  name: 'a',
  rules: [{ ...rule, verbs: ['list', 'watch'] }],
  onError: 'pass',
  needs: [],
  create: () => () => 'leave',
  ...rest,
})

void t.test(
  'a filter is created of its needs alone, and again only when one changes',
  async (t) => {
    const given: unknown[] = []
    const definition = define({
      needs: ['poolNodes', 'hubAddress'],
      create: (known) => {
        given.push(known)
        return () => 'leave'
      },
    })
    const filters = filtersOf([definition], { poolNodes: ['a'] })
    const first = filters.chainFor('kube-proxy', services, 'list')
    t.equal(filters.chainFor('kube-proxy', services, 'list'), first)
    t.equal(filters.chainFor('kube-proxy', services, 'watch'), first, 'whatever the verb')
    filters.setInputs({ poolNodes: ['a'] })
    filters.setInputs({ nodeName: 'another' })
    t.equal(given.length, 1, 'nothing it needs has changed')
    filters.setInputs({ poolNodes: ['a', 'b'] })
    const second = filters.chainFor('kube-proxy', services, 'list')
    t.not(second, first)
    t.not(second?.state.text, first?.state.text)
    t.strictSame(given, [
      { poolNodes: ['a'], hubAddress: null },
      { poolNodes: ['a', 'b'], hubAddress: null },
    ])
  },
)

void t.test(
  'a filter runs without an unavailable input, and its former state goes on doing so',
  async (t) => {
    const definition = define({
      needs: ['pool'],
      awaits: ['pool'],
      create: ({ pool }) => (pool === undefined ? undefined : () => 'withhold'),
    })
    const filters = filtersOf([definition])
    let told = 0
    filters.onChange(() => told++)
    filters.setInputs({ untold: ['pool'] })
    t.equal(told, 1, 'waiting requests are woken')
    const without = filters.chainFor('kube-proxy', services, 'list')
    t.strictSame(without?.missingInputs, [])
    t.equal(without?.apply(service, 'json', object), object)
    filters.setInputs({ pool: null, untold: [] })
    t.equal(
      filters.chainFor('kube-proxy', services, 'list')?.apply(service, 'json', object),
      undefined,
    )
  },
)

void t.test('a filter that cannot be created fails by its onError', async (t) => {
  const failures: string[] = []
  const create = (): never => {
    throw new Error('no')
  }
  const filters = filtersOf(
    [define({ create }), define({ name: 'b', create, onError: 'withhold' })],
    {},
    (name) => failures.push(name),
  )
  t.strictSame(failures, ['a', 'b'])
  t.equal(
    filters.chainFor('kube-proxy', services, 'list')?.apply(service, 'json', object),
    undefined,
  )
})

void t.test('a mirror pod is left as it is', async (t) => {
  const pods = { ...services, resource: 'pods' }
  const pod = { ...service, kind: 'Pod' }
  const definition = define({
    rules: [{ ...rule, resources: ['pods'], verbs: ['list'] }],
    create: () => () => 'withhold',
  })
  const chain = filtersOf([definition]).chainFor('kube-proxy', pods, 'list')
  const annotations = '{"kubernetes.io/config.mirror":"x"}'
  const mirror = { ...object, bytes: Buffer.from(`{"metadata":{"annotations":${annotations}}}`) }
  t.equal(chain?.apply(pod, 'json', mirror), mirror)
  t.equal(chain?.apply(pod, 'json', { ...object, name: 'b' }), undefined)
})

void t.test('a rule about one object applies only where the answer may have it', async (t) => {
  const only = { namespace: 'default', name: 'kubernetes' }
  const filters = filtersOf([define({ rules: [{ ...rule, verbs: ['list'], only }] })])
  const stands = (namespace?: string, query = '', name?: string) =>
    filters.chainFor('kube-proxy', services, 'list', {
      ...(namespace !== undefined && { namespace }),
      ...(name !== undefined && { name }),
      query: new URLSearchParams(query),
    }) !== undefined
  const named = 'fieldSelector=metadata.name%3D'
  t.ok(stands())
  t.ok(stands('default'))
  t.ok(stands('default', `${named}kubernetes`))
  t.ok(stands(undefined, `${named}kubernetes`))
  t.ok(stands('default', '', 'kubernetes'))
  t.notOk(stands('other'))
  t.notOk(stands('default', `${named}other`))
  t.notOk(stands(undefined, `${named}other`))
  t.notOk(stands('default', '', 'other'))
})

const watch = {
  component: 'kube-proxy',
  info: parseRequestInfo('GET', '/api/v1/services?watch=true'),
}

void t.test('a filter that declares to withhold nothing cannot', async (t) => {
  const failures: string[] = []
  const filters = filtersOf(
    [define({ withholds: false, create: () => () => 'withhold' })],
    {},
    (filter) => failures.push(filter),
  )
  t.equal(filters.mayWithholdOf(watch), false)
  t.equal(filters.chainFor('kube-proxy', services, 'watch')?.apply(service, 'json', object), object)
  t.strictSame(failures, ['a'])
})

void t.test('objects may be withheld by any other filter, and by one that fails so', async (t) => {
  const may = (rest: Partial<FilterDefinition>): boolean =>
    filtersOf([define(rest)]).mayWithholdOf(watch)
  t.equal(may({}), true)
  t.equal(may({ create: () => undefined }), true, 'other inputs may make it act')
  t.equal(may({ withholds: false, onError: 'withhold' }), true)
  t.equal(may({ rules: [{ ...rule, verbs: ['list'] }] }), false, 'of no watch')
})
