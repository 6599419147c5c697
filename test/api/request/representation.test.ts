import t from 'tap'
import {
  acceptFor,
  representationsOf,
  objectRepresentation,
  parseAccept,
} from '../../../src/api/request/representation.ts'

const representations = (accept: string | undefined, query = ''): string[] =>
  representationsOf(accept, new URLSearchParams(query)).map(({ key }) => key)

const types = (accept: string | undefined): string[] => parseAccept(accept).map(({ type }) => type)

void t.test('representations are in the client’s order of preference', async (t) => {
  const table: [string, string | undefined, string[]][] = [
    ['no preference', undefined, ['json']],
    ['an empty field', ' ', ['json']],
    ['kubelet', 'application/vnd.kubernetes.protobuf,application/json', ['protobuf', 'json']],
    ['kube-proxy', 'application/vnd.kubernetes.protobuf, */*', ['protobuf', 'json']],
    ['an older clientset', 'application/json, */*', ['json', 'json']],
    ['curl', '*/*', ['json']],
    ['a wildcard of applications', 'application/*', ['json']],
    ['openapi', 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf', []],
    ['yaml', 'application/yaml', []],
    ['a browser', 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', ['json']],
    ['upper case', 'Application/JSON', ['json']],
  ]
  for (const [who, accept, expected] of table) t.strictSame(representations(accept), expected, who)
})

void t.test('conversion parameters in any order give one representation', async (t) => {
  const orders = [
    'application/json;as=Table;v=v1;g=meta.k8s.io',
    'application/json;as=Table;g=meta.k8s.io;v=v1',
    'application/json;v=v1;g=meta.k8s.io;as=Table',
    'application/json; v=v1 ; g = meta.k8s.io ; AS=Table',
  ]
  for (const accept of orders)
    t.strictSame(representations(accept), ['json;table;v1;Metadata'], accept)
})

void t.test('kubectl gets tables, of either version, and falls back to objects', async (t) => {
  t.strictSame(
    representations(
      'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json',
    ),
    ['json;table;v1;Metadata', 'json;table;v1beta1;Metadata', 'json'],
  )
})

void t.test('includeObject is part of a Table’s representation', async (t) => {
  const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'
  t.strictSame(representations(table, 'includeObject=Object'), ['json;table;v1;Object'])
  t.strictSame(representations(table, 'includeObject='), ['json;table;v1;Metadata'])
  t.strictSame(representations('application/json', 'includeObject=Object'), ['json'])
})

void t.test('parameters that API servers ignore make no representations', async (t) => {
  const table = 'application/json;as=Table;g=meta.k8s.io'
  t.strictSame(representations(`${table};v=v7,${table};v=v1`), ['json;table;v1;Metadata'])
  t.strictSame(representations(`${table};v=v1`, 'includeObject=Whatever'), [])
  t.strictSame(representations('application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v7'), [])
})

void t.test(
  'metadata is a representation in both encodings, one for object and list',
  async (t) => {
    t.strictSame(
      representations(
        'application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
      ),
      ['protobuf;metadata;v1', 'json;metadata;v1'],
    )
    t.strictSame(representations('application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1'), [
      'json;metadata;v1',
    ])
  },
)

void t.test('list and watch request the given representation upstream', async (t) => {
  const meta = 'v=v1;g=meta.k8s.io'
  for (const accept of [
    'application/json',
    'application/vnd.kubernetes.protobuf',
    `application/json;as=PartialObjectMetadata;${meta}`,
    `application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io`,
  ]) {
    const [representation] = representationsOf(accept, new URLSearchParams())
    if (!representation) throw new Error(accept)
    const watch = acceptFor(representation, 'watch')
    t.equal(watch, accept)
    const list = acceptFor(representation, 'list')
    t.equal(list, accept.replace('Metadata;', 'MetadataList;'))
    for (const each of [watch, list]) t.strictSame(representations(each), [representation.key])
  }
})

void t.test('an unknown conversion is skipped', async (t) => {
  t.strictSame(representations('application/json;as=Table;v=v1;g=other.io,application/json'), [
    'json',
  ])
  t.strictSame(representations('application/json;as=Table;v=v1'), [])
  t.strictSame(
    representations('application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io'),
    [],
  )
  t.strictSame(
    representations(
      'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json',
    ),
    ['json'],
  )
})

void t.test('parameters without effect are ignored', async (t) => {
  t.strictSame(representations('application/json;pretty=1;charset=utf-8;stream=watch'), ['json'])
})

void t.test(
  'quality comes first, then how specific a clause is, then the order it was written in',
  async (t) => {
    t.strictSame(types('a/a;q=0.5,b/b'), ['b/b', 'a/a'])
    t.strictSame(types('*/*,a/*,a/a'), ['a/a', 'a/*', '*/*'])
    t.strictSame(types('*/*;q=1,a/a;q=0.1'), ['*/*', 'a/a'])
    t.strictSame(types('a/a,b/b,c/c'), ['a/a', 'b/b', 'c/c'])
    t.strictSame(types('a/a;q=0,b/b'), ['b/b'])
    t.strictSame(
      representations('application/vnd.kubernetes.protobuf;q=0.1,application/json;q=0.9'),
      ['json', 'protobuf'],
    )
  },
)

void t.test('a malformed Accept header gives none', async (t) => {
  for (const accept of [',', ';;;', ';as=Table', 'application/json;q=much', '=', 'a/b;=;=;']) {
    t.doesNotThrow(() => representations(accept), accept)
  }
  t.strictSame(representations(',application/json,'), ['json'])
})

void t.test('objectRepresentation() is that of a request without conversion', async (t) => {
  t.strictSame(
    objectRepresentation('protobuf'),
    representationsOf('application/vnd.kubernetes.protobuf', new URLSearchParams())[0],
  )
})
