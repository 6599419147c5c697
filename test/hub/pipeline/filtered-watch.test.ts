import t from 'tap'
import type { FilterDefinition } from '../../../src/hub/filter/filter.ts'
import { Filters } from '../../../src/hub/filter/filters.ts'
import { ShownStates } from '../../../src/hub/filter/shown-states.ts'
import { filteredWatch } from '../../../src/hub/pipeline/filtered-watch.ts'
import type { AbortSignalLike } from '../../../src/base/abort.ts'
import type { Encoding } from '../../../src/api/kube/media-type.ts'
import { nodeIdentity } from '../../../src/api/request/identity.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { ownRequest } from '../../../src/http/exchange/own-request.ts'
import { at, type Watching } from '../../kit/client.ts'
import { service, services, startCloud } from '../../kit/cloud.ts'
import { startHubParts } from '../../kit/hub-parts.ts'
import { inputsOf } from '../../kit/inputs.ts'

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
    const filters = new Filters([marking], inputsOf({ poolNodes: [] }), {
      onFailure: (_, cause) => t.fail(String(cause)),
      warn: () => undefined,
    })
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

void t.test('a watch that passes undecoded is broken off once a filter acts', async (t) => {
  const hiding: FilterDefinition = {
    name: 'hiding',
    rules: [{ components: ['kube-proxy'], group: '', resources: ['services'], verbs: ['watch'] }],
    onError: 'withhold',
    needs: ['poolNodes'],
    create: () => () => 'withhold',
  }
  const filters = new Filters([hiding], inputsOf(), {
    onFailure: (_, cause) => t.fail(String(cause)),
    warn: () => undefined,
  })
  const exchange = ownRequest({
    method: 'GET',
    url: '/api/v1/services?watch=true&resourceVersion=5',
    accept: 'application/json',
    userAgent: 'coredns',
    identity: nodeIdentity,
    credential: 'node',
    signal: new AbortController().signal,
  })
  const signals: AbortSignalLike[] = []
  if (!exchange.info.isResource) throw new Error('no resource')
  const parts = {
    filters,
    shown: new ShownStates(),
    ensureInputs: () => undefined,
    onExpired: () => undefined,
  }
  await filteredWatch(
    parts,
    async ({ signal }) => {
      signals.push(signal)
      const source = () => () => undefined
      return { kind: 'bytes', from: 'cloud', status: 200, headers: new HeaderList(), source }
    },
    exchange,
    exchange.info,
  )
  filters.setInputs({ poolNodes: ['a'] })
  t.strictSame(
    signals.map(({ aborted }) => aborted),
    [false],
  )
  filters.setAdditionalComponents(new Map([['hiding', new Set(['coredns'])]]))
  t.strictSame(
    signals.map(({ aborted }) => aborted),
    [true],
  )
})
