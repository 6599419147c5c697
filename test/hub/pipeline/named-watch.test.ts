import t from 'tap'
import type { FilterDefinition } from '../../../src/hub/filter/filter.ts'
import { Filters } from '../../../src/hub/filter/filters.ts'
import { ShownStates } from '../../../src/hub/filter/shown-states.ts'
import type { Encoding } from '../../../src/api/kube/media-type.ts'
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
    const hooks = { onDifference: () => undefined, onExpired: () => undefined }
    const hub = await startHubParts(t, {
      upstream: cloud,
      filtering: { filters, shown: new ShownStates(), hooks },
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
    t.match(await told(watch, 1), [['DELETED', 'a']])
    t.strictSame(new Set(judged), new Set(['a']))
  })
}
