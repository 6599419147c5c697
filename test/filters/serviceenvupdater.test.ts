import t from 'tap'
import { serviceenvupdater } from '../../filters/serviceenvupdater.ts'
import { readObject } from '../../src/api/codec/object.ts'
import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import { filteredObject, filterResult, createdFilter } from '../kit/filter-result.ts'

const filter = createdFilter(serviceenvupdater, {
  hubAddress: { host: '169.254.2.1', port: 10268, forService: true },
})

const variable = (name: string, value?: string): JsonObject => ({
  name,
  ...(value !== undefined && { value }),
})
const host = (value?: string): JsonObject => variable('KUBERNETES_SERVICE_HOST', value)
const port = (value?: string): JsonObject => variable('KUBERNETES_SERVICE_PORT', value)
const other = variable('OTHER', '10.96.0.1')

type Containers = Readonly<Record<string, readonly (readonly JsonObject[])[]>>

const pod = (containers: Containers): JsonObject => ({
  kind: 'Pod',
  apiVersion: 'v1',
  metadata: { name: 'a', namespace: 'default', resourceVersion: '1' },
  spec: {
    nodeName: 'node-1',
    ...Object.fromEntries(
      Object.entries(containers).map(([kind, envs]) => [
        kind,
        envs.map((env, at): Json => {
          return { name: `${kind}-${at}`, image: 'a', ...(env.length > 0 && { env: [...env] }) }
        }),
      ]),
    ),
  },
})

const ours = [host('169.254.2.1'), port('10268')]

// The six cases of yurthub's own test, and the kinds of containers that it leaves out.
const cases: readonly (readonly [why: string, before: Containers, after: Containers | 'left'])[] = [
  [
    'both are set',
    { containers: [[host('10.96.0.1'), other, port('443')]] },
    { containers: [[host('169.254.2.1'), other, port('10268')]] },
  ],
  ['both are right', { containers: [[other, ...ours]] }, 'left'],
  ['neither is set', { containers: [[other], []] }, 'left'],
  [
    'only the host is set',
    { containers: [[host('10.96.0.1')]] },
    { containers: [[host('169.254.2.1')]] },
  ],
  ['only the port is set', { containers: [[port('443')]] }, { containers: [[port('10268')]] }],
  [
    'several containers',
    { containers: [[host('a'), port('1')], [other], [port('2'), host('b')]] },
    { containers: [ours, [other], [port('10268'), host('169.254.2.1')]] },
  ],
  [
    'init and ephemeral containers',
    {
      containers: [[other]],
      initContainers: [[host('a'), port('1')]],
      ephemeralContainers: [[other, host('a')], [port('1')]],
    },
    {
      containers: [[other]],
      initContainers: [ours],
      ephemeralContainers: [[other, host('169.254.2.1')], [port('10268')]],
    },
  ],
  ['set to nothing', { containers: [[host('')]] }, { containers: [[host('169.254.2.1')]] }],
  ['set without a value', { containers: [[host()]] }, { containers: [[host('169.254.2.1')]] }],
  [
    'set twice',
    { containers: [[host('a'), host('b')]] },
    { containers: [[ours[0] as JsonObject, host('169.254.2.1')]] },
  ],
]

void t.test('a container’s API server variables name the hub', async (t) => {
  for (const [why, before, after] of cases) {
    t.strictSame(filterResult(t, filter, pod(before)), after === 'left' ? 'left' : pod(after), why)
  }
})

void t.test('a value that comes from somewhere else stays', async (t) => {
  const sources: readonly JsonObject[] = [
    { fieldRef: { apiVersion: 'v1', fieldPath: 'status.hostIP' } },
    { configMapKeyRef: { name: 'a', key: 'b' } },
    { secretKeyRef: { name: 'a', key: 'b' } },
  ]
  for (const valueFrom of sources) {
    const env = [{ ...host(), valueFrom }]
    t.equal(filterResult(t, filter, pod({ containers: [env] })), 'left')
  }
})

void t.test('without a hub address it does nothing', async (t) => {
  t.equal(
    serviceenvupdater.create({ hubAddress: null }, () => undefined),
    undefined,
  )
})

void t.test('a variable is found however JSON writes its name', async (t) => {
  const text = JSON.stringify(pod({ containers: [[host()]] }))
  const escaped = text.replace('"KUBERNETES_', '"\\u004bUBERNETES_')
  t.not(escaped, text)
  const { object } = readObject('json', 'object', Buffer.from(escaped))
  const gvk = { group: '', version: 'v1', kind: 'Pod' }
  const look = filteredObject(filter, 'json', gvk, object)
  t.match(Buffer.from(look?.bytes ?? '').toString(), '"value":"169.254.2.1"')
})
