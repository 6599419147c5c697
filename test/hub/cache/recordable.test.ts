import t from 'tap'
import { recordable } from '../../../src/hub/cache/recordable.ts'
import { exchangeOf, type ExchangeOptions } from '../../kit/exchange.ts'

const pods = '/api/v1/namespaces/default/pods'

/** A label selector of about so many characters. */
const keys = (length: number): string =>
  Array.from({ length: length / 5 }, (_, at) => 1_000 + at).join()

const cases: readonly (readonly [kind: string, url: string, described?: ExchangeOptions])[] = [
  ['object', `${pods}/a`],
  ['object', `${pods}/a?resourceVersion=0`],
  ['object', '/api/v1/namespaces/default/secrets/s'],
  ['object', '/apis/example.com/v1/things/one'],
  ['list', pods],
  ['list', '/api/v1/pods?limit=500&resourceVersion=0'],
  ['list', '/api/v1/pods?timeout=32s'],
  ['nothing', '/api/v1/pods?shardSelector=a'],
  ['nothing', '/api/v1/pods?watch=1&shardSelector=a'],
  ['nothing', `${pods}/a?export=true`],
  ['nothing', `${pods}??fieldSelector=spec.nodeName%3Dn`],
  ['nothing', `${pods}?fieldSelector=metadata.name%3Da;`],
  ['nothing', `${pods}?fieldSelector=metadata.name%3D%a`],
  ['nothing', `${pods}?watch=1&fieldSelector=metadata.name%3D%a`],
  ['nothing', `${pods}?fieldSelector=metadata.name%3Da${'&'.repeat(10_000)}`],
  ['list', `${pods}?fieldSelector=metadata.name%3Da%3B&limit=500&`],
  ['list', '/api/v1/pods?labelSelector=app%20in%20(a,b)&fieldSelector=spec.nodeName%3Dn'],
  ['list', pods, { headers: { Accept: 'application/json;as=Table;g=meta.k8s.io;v=v1' } }],
  ['nothing', `${pods}?limit=2&continue=next`],
  ['watch', `${pods}?watch=true`],
  ['watch', '/api/v1/watch/pods'],
  ['watch', '/api/v1/watch/namespaces/default/pods/a'],
  ['document', '/api'],
  ['document', '/apis'],
  ['document', '/api/v1'],
  ['document', '/apis/apps/v1'],
  ['document', '/version'],
  ['document', '/openapi/v3/api/v1'],
  ['document', '/openapi/v3/api/v1?hash=0123&timeout=32s'],
  ['document', '/openapi/v3/.well-known/openid-configuration'],
  ['document', `/apis/${'g'.repeat(506)}`],
  ['nothing', `/apis/${'g'.repeat(507)}`],
  ['nothing', '/apis/%61pps/v1'],
  ['nothing', '/api/v1/'],
  ['nothing', '/version/a/b/c/d/e/f/g'],
  ['object', `${pods}/${'n'.repeat(512)}`],
  ['nothing', `${pods}/${'n'.repeat(513)}`],
  ['nothing', `/api/v1/namespaces/${'n'.repeat(513)}/pods`],
  ['list', `/api/v1/pods?labelSelector=${keys(4_000)}&fieldSelector=metadata.name%3Da`],
  ['watch', `${pods}?watch=1&labelSelector=${'a%3Db,'.repeat(1_000)}a%3Db`],
  ['nothing', `/api/v1/pods?labelSelector=${keys(4_100)}`],
  [
    'nothing',
    `${pods}?watch=1&labelSelector=${keys(2_050)}&fieldSelector=x%3D${'b'.repeat(2_050)}`,
  ],
  ['nothing', '/version?i=1'],
  ['nothing', '/api/v1/watch/namespaces/default/pods/a?fieldSelector=status.phase%3DRunning'],
  ['nothing', '/apiary'],
  ['nothing', '/apis/../version'],
  ['nothing', '/api//v1'],
  ['nothing', '/api%2Fv1/pods'],
  ['nothing', '/healthz'],
  ['nothing', '/metrics'],
  ['nothing', `${pods}/a`, { method: 'HEAD' }],
  ['nothing', pods, { method: 'POST' }],
  ['nothing', `${pods}/a`, { method: 'PUT' }],
  ['nothing', `${pods}/a`, { method: 'PATCH' }],
  ['nothing', `${pods}/a`, { method: 'DELETE' }],
  ['nothing', `${pods}/a/log`],
  ['nothing', `${pods}/a/status`],
  ['nothing', `${pods}/a/exec?command=ls`, { upgrade: true }],
  ['nothing', `${pods}?watch=true`, { upgrade: true }],
  ['nothing', `${pods}?pretty=true`],
  ['nothing', pods, { headers: { Accept: 'application/json;pretty=1' } }],
  ['nothing', pods, { headers: { 'User-Agent': 'curl/8.0' } }],
  ['nothing', `${pods}?labelSelector=a%20b`],
  ['nothing', `${pods}?fieldSelector=a`],
  ['nothing', pods, { headers: { Accept: 'application/yaml' } }],
  ['nothing', pods, { headers: { Accept: 'application/cbor' } }],
  ['nothing', pods, { headers: { 'Impersonate-User': 'somebody' } }],
  ['nothing', '/api', { headers: { 'impersonate-extra-x': 'y' } }],
  ['nothing', '/apis/certificates.k8s.io/v1/certificatesigningrequests'],
  ['nothing', '/apis/certificates.k8s.io/v1/certificatesigningrequests/csr-1'],
]

for (const [kind, url, described] of cases) {
  const headers = JSON.stringify(described?.headers ?? {})
  void t.test(
    `${described?.method ?? 'GET'} ${url.slice(0, 200)} ${headers}: ${kind} is kept`,
    async (t) => {
      t.equal(recordable(exchangeOf(url, described))?.kind ?? 'nothing', kind)
    },
  )
}
