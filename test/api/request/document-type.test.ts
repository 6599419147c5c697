import t from 'tap'
import { documentTypeOf, documentTypesOf } from '../../../src/api/request/document-type.ts'

const json = 'application/json'
const protobuf = 'application/vnd.kubernetes.protobuf'
const aggregated = (version: string, encoding = json): string =>
  `${encoding};g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`
const openApi = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'

void t.test('each client gets the types that it accepts, by preference', async (t) => {
  const table: [string, string | undefined, string[]][] = [
    ['no preference', undefined, [json]],
    ['curl', '*/*', [json]],
    ['an older clientset', 'application/json, */*', [json]],
    ['kubelet', `${protobuf},application/json`, [protobuf, json]],
    [
      'kubectl',
      `${aggregated('v2')},${aggregated('v2beta1')},application/json`,
      [aggregated('v2'), aggregated('v2beta1'), json],
    ],
    ['discovery in protobuf', aggregated('v2', protobuf), [aggregated('v2', protobuf)]],
    [
      'other order',
      'application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io',
      [aggregated('v2')],
    ],
    ['OpenAPI', 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf', [openApi]],
    ['quality', `application/json;q=0.5,${protobuf}`, [protobuf, json]],
    ['yaml', 'application/yaml', []],
  ]
  for (const [who, accept, expected] of table) t.strictSame(documentTypesOf(accept), expected, who)
})

void t.test('arbitrary Accept headers give few types', async (t) => {
  const written = Array.from({ length: 100 }, (_, at) => [
    `application/json;x=${at}`,
    `application/json;g=apidiscovery.k8s.io;v=v${at};as=APIGroupDiscoveryList`,
    `application/json;g=g${at};v=v2;as=APIGroupDiscoveryList`,
    `${aggregated('v2')};profile=p${at}`,
    `application/json;g=meta.k8s.io;v=v1;as=As${at}`,
    `application/x-${at}, */*;q=0.${at}`,
    `application/com.github.proto-openapi.spec.v${at}@v1.0+protobuf`,
  ]).flat()
  const types = new Set(written.flatMap((accept) => documentTypesOf(accept)))
  t.ok(types.size <= 5, [...types].join())
})

void t.test('an answer is of the representation that its Content-Type says', async (t) => {
  t.equal(documentTypeOf('application/json'), json)
  t.equal(documentTypeOf('application/json; charset=utf-8'), json)
  t.equal(documentTypeOf(aggregated('v2')), aggregated('v2'))
  t.equal(documentTypeOf(openApi), openApi)
  for (const other of [
    undefined,
    'text/html',
    'application/json;as=Table;g=meta.k8s.io;v=v1',
    'a,b',
  ])
    t.equal(documentTypeOf(other), undefined, String(other))
})
