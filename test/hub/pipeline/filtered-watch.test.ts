import t, { type Test } from 'tap'
import type { FilterDefinition } from '../../../src/hub/filter/filter.ts'
import type { Filters } from '../../../src/hub/filter/filters.ts'
import { ShownStates } from '../../../src/hub/filter/shown-states.ts'
import { withFilters } from '../../../src/hub/pipeline/filter-answers.ts'
import type { AbortSignalLike } from '../../../src/base/abort.ts'
import type { Encoding } from '../../../src/api/kube/media-type.ts'
import { nodeIdentity } from '../../../src/api/request/identity.ts'
import type { BytesReply, Exchange, Reply } from '../../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { ownRequest } from '../../../src/http/exchange/own-request.ts'
import { at, type Watching } from '../../kit/client.ts'
import { service, services, startCloud } from '../../kit/cloud.ts'
import { startHubParts } from '../../kit/hub-parts.ts'
import { filteringOf } from '../../kit/filtering.ts'
import { filtersOf } from '../../kit/inputs.ts'

const encodings: readonly Encoding[] = ['json', 'protobuf']

const rest = '/namespaces/default/services'

/** What the next events say, with what the filter has written. */
const told = async (watch: Watching, count: number): Promise<unknown[]> =>
  (await watch.take(count)).map(({ type, object }) => [
    type,
    at(object, 'metadata', 'name'),
    at(object, 'spec', 'externalName'),
  ])

for (const encoding of encodings) {
  void t.test(`a watch of a name in its path is filtered as any other: ${encoding}`, async (t) => {
    const cloud = await startCloud(t)
    for (const name of ['a', 'b']) cloud.sandbox.create(services, service(name, '10.96.0.9'))
    const judged: string[] = []
    const marking: FilterDefinition = {
      name: 'marking',
      rules: [
        {
          components: ['kube-proxy'],
          group: '',
          resources: ['services'],
          verbs: ['list', 'watch'],
        },
      ],
      onError: 'withhold',
      needs: ['poolNodes'],
      create:
        ({ poolNodes }) =>
        ({ name }) => {
          judged.push(name)
          if (poolNodes?.includes(name)) return 'withhold'
          return [{ op: 'set', path: ['spec', 'externalName'], value: 'here' }]
        },
    }
    const filters = filtersOf([marking], { poolNodes: [] }, (_, cause) => t.fail(String(cause)))
    const hub = await startHubParts(t, {
      upstream: cloud,
      filtering: { filters, shown: new ShownStates(), onExpired: () => undefined },
    })
    const client = hub.as('kube-proxy', { encoding })
    const { resourceVersion } = await client.list(`/api/v1${rest}?fieldSelector=metadata.name%3Da`)
    const watch = await client.watch(`/api/v1/watch${rest}/a`, {
      resourceVersion,
    })
    cloud.sandbox.update(services, service('b', '10.96.0.50'))
    cloud.sandbox.update(services, service('a', '10.96.0.50'))
    t.strictSame(await told(watch, 1), [['MODIFIED', 'a', 'here']])
    filters.setInputs({ poolNodes: ['a'] })
    t.match(await watch.next(), { type: 'ERROR', object: { code: 410 } })
    t.strictSame(new Set(judged), new Set(['a']))
  })
}

/** Hides all services from kube-proxy, and from components that an operator adds. */
const hidingFilters = (t: Test): Filters => {
  const hiding: FilterDefinition = {
    name: 'hiding',
    rules: [
      { components: ['kube-proxy'], group: '', resources: ['services'], verbs: ['list', 'watch'] },
    ],
    onError: 'withhold',
    needs: ['poolNodes'],
    create: () => () => 'withhold',
  }
  return filtersOf([hiding], {}, (_, cause) => t.fail(String(cause)))
}

const forCoredns = new Map([['hiding', new Set(['coredns'])]])

const ofCoredns = (query: string): Exchange =>
  ownRequest({
    method: 'GET',
    url: `/api/v1/services?${query}`,
    accept: 'application/json',
    userAgent: 'coredns',
    identity: nodeIdentity,
    credential: 'node',
    signal: new AbortController().signal,
  })

const passing: BytesReply = {
  kind: 'bytes',
  from: 'cloud',
  status: 200,
  headers: new HeaderList(['content-type', 'application/json']),
  source: () => () => undefined,
}

for (const meanwhile of [false, true]) {
  const when = meanwhile ? 'while it was requested' : 'later'
  void t.test(`a watch that passes undecoded ends once a filter acts: ${when}`, async (t) => {
    const filters = hidingFilters(t)
    const enable = (): void => filters.setAdditionalComponents(forCoredns)
    const signals: AbortSignalLike[] = []
    const cloud = async ({ signal }: Exchange): Promise<Reply> => {
      signals.push(signal)
      if (meanwhile) enable()
      return passing
    }
    const aborted = (): boolean[] => signals.map((signal) => signal.aborted)
    await withFilters(filteringOf(filters))(cloud)(ofCoredns('watch=true&resourceVersion=5'))
    t.strictSame(aborted(), [meanwhile])
    if (!meanwhile) filters.setInputs({ poolNodes: ['a'] })
    t.strictSame(aborted(), [meanwhile])
    enable()
    t.strictSame(aborted(), [true])
  })
}

void t.test('once a filter is disabled a client lists once, and then watches', async (t) => {
  const filters = hidingFilters(t)
  filters.setAdditionalComponents(forCoredns)
  const replies: Reply[] = []
  const asked = withFilters(filteringOf(filters))(async () => replies.shift() ?? passing)
  const list = (): Promise<Reply> => asked(ofCoredns('limit=500'))
  const watch = (): Promise<Reply> => asked(ofCoredns('watch=true&resourceVersion=5'))
  const services =
    '{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}'
  const { source: _none, ...head } = passing
  replies.push({ ...head, kind: 'body', body: Buffer.from(services) })
  const listed = await list()
  if (listed.kind !== 'list') throw new Error('no list')
  await listed.list.end()
  filters.setAdditionalComponents(new Map())
  t.equal((await watch()).kind, 'watch', 'it ends with 410')
  t.equal((await asked(ofCoredns('limit=500&continue=x'))).kind, 'bytes')
  t.equal((await watch()).kind, 'watch', 'a further page shows nothing of the first')
  t.equal((await list()).kind, 'bytes')
  t.equal((await watch()).kind, 'bytes')
})
