import t from 'tap'
import { cursorOf } from '../../../../src/api/codec/cursor.ts'
import { applyEdits } from '../../../../src/api/codec/edit.ts'
import type { FilterDefinition } from '../../../../src/hub/filter/filter.ts'
import type { Inputs } from '../../../../src/hub/filter/inputs.ts'
import { loadFilters } from '../../../../src/hub/filter/own/load.ts'
import type { GVK } from '../../../../src/api/kube/gvk.ts'
import type { JsonObject } from '../../../../src/api/kube/json.ts'
import type { Encoding } from '../../../../src/api/kube/media-type.ts'
import { encoded } from '../../../kit/encoded.ts'
import { inputsOf } from '../../../kit/inputs.ts'
import { FilterFolder } from '../../../kit/own-filter.ts'

const folder = new FilterFolder(t)
let files = 0

async function declared(yaml: string): Promise<readonly FilterDefinition[]> {
  const loaded = await loadFilters([folder.write(`${files++}.yaml`, yaml)], [])
  if ('mistakes' in loaded) throw new Error(loaded.mistakes.join('\n'))
  return loaded.filters
}

async function mistakesIn(yaml: string): Promise<readonly string[]> {
  const file = folder.write(`${files++}.yaml`, yaml)
  const loaded = await loadFilters([file], [])
  return 'mistakes' in loaded ? loaded.mistakes.map((each) => each.replace(`${file}: `, '')) : []
}

const services = (then: string, when = 'true'): string => `
- name: own
  components: [kube-proxy]
  resources: [services]
  when: ${JSON.stringify(when)}
  then: ${then}
`

const gvk: GVK = { group: '', version: 'v1', kind: 'Service' }

const service: JsonObject = {
  metadata: {
    name: 'web',
    namespace: 'default',
    uid: 'u',
    labels: { app: 'web' },
    creationTimestamp: null,
  },
  spec: {
    type: 'NodePort',
    ports: [
      { name: 'http', port: 80, targetPort: 'web', nodePort: 30080 },
      { name: 'https', port: 443, targetPort: 8443, nodePort: 30443 },
    ],
    externalIPs: ['192.0.2.1'],
  },
  status: { loadBalancer: {} },
}

/** The result of one filter in either encoding, as JSON. */
function made(
  [definition]: readonly FilterDefinition[],
  object = service,
  inputs: Partial<Inputs> = {},
): unknown {
  const filter = definition?.create(inputsOf(inputs), () => undefined)
  if (typeof filter !== 'function') throw new Error('nothing to do')
  const [json, protobuf] = (['json', 'protobuf'] as const).map((encoding: Encoding) => {
    const given = encoded(encoding, gvk, object)
    try {
      const judgement = filter(cursorOf(encoding, gvk, given))
      if (judgement === 'leave' || judgement === 'withhold') return judgement
      const after = applyEdits(encoding, gvk, given, judgement)
      return ['metadata', 'spec'].map((field) => cursorOf(encoding, gvk, after).json([field]))
    } catch (error) {
      return `failed: ${(error as Error).message}`
    }
  })
  t.strictSame(withoutEmpty(protobuf), withoutEmpty(json), 'the same in protobuf and in JSON')
  return json
}

/** What a table adds that JSON need not have: null where Go has an empty struct. */
const withoutEmpty = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_key, each: unknown) => (each === null ? undefined : each)))

void t.test('an object that meets the condition is withheld', async (t) => {
  const filters = await declared(services('withhold', `object.spec.type == 'NodePort'`))
  t.match(filters, [
    {
      name: 'own',
      rules: [
        {
          components: ['kube-proxy'],
          group: '',
          resources: ['services'],
          verbs: ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'],
        },
      ],
      onError: 'pass',
      needs: [],
      revision: /^[0-9a-f]{16}$/,
    },
  ])
  t.equal(made(filters), 'withhold')
  t.equal(made(filters, { ...service, spec: { type: 'ClusterIP' } }), 'leave')
  t.match(made(filters, { metadata: { name: 'a' }, spec: {} }), /^failed: no such key: spec.type/)
})

void t.test('fields are set to constants or to values of expressions, or removed', async (t) => {
  const filters = await declared(
    services(`
    - set: spec.ports[*].protocol
      value: TCP
    - set: metadata.labels['example.com/of']
      expression: object.metadata.name + '-' + string(size(object.spec.ports))
    - set: spec.ports[0].port
      expression: object.spec.ports[0].port + 1
    - set: spec.selector
      value: { app: web }
    - remove: spec.ports[*].nodePort
    - remove: spec.externalIPs`),
  )
  t.match(made(filters), [
    { labels: { app: 'web', 'example.com/of': 'web-2' } },
    {
      ports: [
        { name: 'http', port: 81, targetPort: 'web', protocol: 'TCP', nodePort: undefined },
        { name: 'https', port: 443, targetPort: 8443, protocol: 'TCP', nodePort: undefined },
      ],
      selector: { app: 'web' },
      externalIPs: undefined,
    },
  ])
})

void t.test(
  'node and pool have the hub’s facts, and are awaited where they are used',
  async (t) => {
    const filters = await declared(
      services(
        'withhold',
        `pool != null && object.metadata.labels.app != node.labels['app'] + pool.name`,
      ),
    )
    t.match(filters, [{ needs: ['pool', 'node'], awaits: ['pool', 'node'] }])
    const node = { name: 'n', labels: { app: 'w' }, annotations: {} }
    const pool = { name: 'eb', type: 'Edge', hostNetwork: undefined, labels: {}, annotations: {} }
    t.equal(made(filters, service, { node, pool }), 'leave')
    t.equal(made(filters, service, { node, pool: { ...pool, name: 'x' } }), 'withhold')
    t.equal(made(filters, service, { node, pool: null }), 'leave')
    t.match(await declared(services('withhold')), [{ needs: [] }])
  },
)

void t.test('custom resources may have any fields', async (t) => {
  const [filter] = await declared(`
- name: gateways
  components: [raven-agent-ds]
  group: raven.openyurt.io
  resources: [gateways]
  when: object.spec.exposeType == 'PublicIP' && object.spec.endpoints.exists(e, e.underNAT)
  then: [{ set: spec.tunnelConfig.replicas, value: 2 }]`)
  const object = {
    metadata: { name: 'g' },
    spec: { exposeType: 'PublicIP', endpoints: [{ underNAT: true }] },
  }
  const kind = { group: 'raven.openyurt.io', version: 'v1beta1', kind: 'Gateway' }
  const judge = filter?.create(inputsOf(), () => undefined)
  const given = encoded('json', kind, object)
  t.strictSame(typeof judge === 'function' && judge(cursorOf('json', kind, given)), [
    { op: 'set', path: ['spec', 'tunnelConfig', 'replicas'], value: 2 },
  ])
})

void t.test('an expression without a valid field value fails at the object', async (t) => {
  for (const [expression, reason] of [
    ['null', 'a field cannot be set to null'],
    ['{1: 2}', 'a map key that is no string'],
    ['9007199254740993', 'a number beyond 2^53'],
  ] as const) {
    const filters = await declared(
      services(`[{ set: spec.clusterIP, expression: "${expression}" }]`),
    )
    t.equal(made(filters), `failed: ${reason}`, expression)
  }
})

void t.test('all mistakes are reported at once, with line and path', async (t) => {
  t.strictSame(
    await mistakesIn(`
- name: Bad Name
  component: [x]
  resources: [services]
  verbs: [lst]
  when: object.spec.type == 'NodePort'
  then: withhold
- name: two
  components: [kube-proxy]
  resources: [services]
  when: object.spec.tipe == 'NodePort' && object.metadata.name.matches('x')
  onError: ignore
  then:
    - set: spec.type
      value: 5
    - set: spec.tipe
      value: x
    - set: metadata.name
      value: x
    - set: spec.type
    - remove: spec..x
    - remove: spec.ports.name
    - set: spec.type
      expression: object.spec.
    - { sett: x }
    - set: spec.type
      value: null
- just text
`),
    [
      'line 2, filter 1: component is not known, did you mean components?',
      'line 2, filter 1: name must be lower-case letters, digits and dashes, at most 63, not "Bad Name"',
      'line 2, filter 1: components must be a list of at least one name',
      'line 2, filter 1: verbs: lst is no verb, did you mean list?',
      'line 8, filter 2: onError must be pass or withhold, not "ignore"',
      'line 11, filter 2, when: character 35: matches() is not available: the cost of a regular expression has no bound (services)',
      'line 14, filter 2, then, 0: spec.type: not a string (services)',
      'line 16, filter 2, then, 1: spec.tipe: no field tipe is known in ServiceSpec (services)',
      'line 18, filter 2, then, 2: metadata.name: an edit of what the object is known by (services)',
      'line 20, filter 2, then, 3: a set takes either a value or an expression',
      `line 21, filter 2, then, 4: "spec..x" is no path such as spec.ports[*].name or metadata.labels['a.example/b']`,
      'line 22, filter 2, then, 5: spec.ports.name: no list has name (services)',
      'line 24, filter 2, then, 6, expression: character 13: Expected IDENTIFIER, got EOF (services)',
      'line 25, filter 2, then, 7: must be { set: PATH, value: CONSTANT }, { set: PATH, expression: CEL } or { remove: PATH }',
      'line 26, filter 2, then, 8: a field cannot be set to null: remove it',
      'line 28, filter 3: must declare a filter, not "just text"',
    ],
  )
})

void t.test('paths are checked for each resource of the filter', async (t) => {
  const of = (group: string, resources: string, path: string): Promise<readonly string[]> =>
    mistakesIn(
      `[{ name: a, components: [x], group: "${group}", resources: [${resources}], when: "has(${path})", then: withhold }]`,
    )
  t.strictSame(await of('', 'services, pods', 'object.spec.nodeName'), [
    'line 1, filter 1, when: character 5: object.spec.nodeName: no field nodeName is known in ServiceSpec (services)',
  ])
  t.strictSame(await of('', 'endpoints', 'object.subsets[0].addresses'), [])
  t.strictSame(await of('discovery.k8s.io', 'endpointslices', 'object.endpoints[0].zone'), [])
  t.strictSame(
    await of('discovery.k8s.io', 'endpointslices', 'object.endpoints[0].topology'),
    [],
    'as in v1beta1',
  )
  t.strictSame(await of('storage.k8s.io', 'csidrivers', 'object.spec.attachRequired'), [])
  t.match(await of('networking.k8s.io', 'ingresses', 'object.spec.rules'), [
    /no field spec is known in PartialObjectMetadata \(ingresses\.networking\.k8s\.io\)/,
  ])
  t.strictSame(await of('networking.k8s.io', 'ingresses', 'object.metadata.labels.x'), [])
})

void t.test('a duplicate key is refused, and the mistakes reported are limited', async (t) => {
  t.strictSame(await mistakesIn('- name: a\n  name: b\n'), [
    'line 2: "name" appears twice in one map',
  ])
  const many = Array.from({ length: 30_000 }, (_, at) => `  key-${at}: 1\n`).join('')
  const mistakes = await mistakesIn(`- name: a\n${many}`)
  t.equal(mistakes.length, 101, 'not all of them are said')
  t.match(mistakes[0], 'line 1, filter 1: key-0 is not known')
  t.equal(mistakes.at(-1), 'and more')
})

void t.test('a filter has twenty edits at most', async (t) => {
  const edits = (count: number): string =>
    services(`[${Array.from({ length: count }, () => '{ remove: spec.type }').join(', ')}]`)
  t.strictSame(await mistakesIn(edits(20)), [])
  t.match(await mistakesIn(edits(21)), [/a list of at most 20 edits/])
})

void t.test('a file that is no list of filters is refused', async (t) => {
  t.match(await mistakesIn('a: ['), [/^line 1: /])
  t.match(await mistakesIn('name: x'), [/must be a list of filters/])
  t.match(await mistakesIn('[]'), [/must be a list of filters/])
  t.match(await mistakesIn(Array.from({ length: 101 }, () => '- x').join('\n')), [/at most 100/])
  const bomb = `- &a [x,x,x,x,x,x,x,x,x,x]\n- &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n- &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n- [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]`
  t.match(await mistakesIn(bomb), [/Excessive alias count/])
})
