import t from 'tap'
import type { FilterDefinition } from '../../../src/hub/filter/filter.ts'
import { ShownStates } from '../../../src/hub/filter/shown-states.ts'
import { ensureInputsOf } from '../../../src/hub/wiring/data-path.ts'
import { at, objectOf } from '../../kit/client.ts'
import { allServices, service, services, startCloud } from '../../kit/cloud.ts'
import { startHubParts } from '../../kit/hub-parts.ts'
import { filtersOf } from '../../kit/inputs.ts'

/** Puts the hub's address into services. */
const leading: FilterDefinition<'hubAddress'> = {
  name: 'leading',
  rules: [{ components: ['kubelet'], group: '', resources: ['services'], verbs: ['list'] }],
  onError: 'pass',
  needs: ['hubAddress'],
  create:
    ({ hubAddress }) =>
    () => [{ op: 'set', path: ['spec', 'externalName'], value: hubAddress?.host ?? 'nowhere' }],
}

void t.test('only requests that show the address of the hub wait for it', async (t) => {
  const cloud = await startCloud(t)
  cloud.sandbox.create(services, service('a', '10.96.0.9'))
  const filters = filtersOf([leading as FilterDefinition], {}, (_, cause) => t.fail(String(cause)))
  const judged = Promise.withResolvers<void>()
  const asked: string[][] = []
  const hub = await startHubParts(t, {
    upstream: cloud,
    filtering: {
      filters,
      shown: new ShownStates(),
      onExpired: () => undefined,
    },
    learn: ensureInputsOf({
      filters,
      inputs: {
        ensure: (names) => {
          asked.push([...names])
          return undefined
        },
      },
      hubAddress: { firstProbe: judged.promise },
    }),
  })
  const led = hub.as('kubelet').get(allServices)
  t.equal((await hub.as('kubelet').get('/version')).status, 200)
  t.equal((await hub.as('kubelet').get('/api/v1/pods')).status, 200)
  t.equal((await hub.as('coredns').get(allServices)).status, 200)
  filters.setInputs({ hubAddress: { host: '192.0.2.1', port: 10268, forService: true } })
  judged.resolve()
  const { body, headers } = await led
  const shown = at(objectOf({ body, headers }), 'items', 0, 'spec', 'externalName')
  t.equal(shown, '192.0.2.1', 'what is known by then')
  t.strictSame(
    asked.filter((names) => names.length > 0),
    [['hubAddress']],
  )
})
