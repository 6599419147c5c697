import t from 'tap'
import {
  isTrue,
  namedBySelector,
  parseRequestInfo,
  type ResourceRequest,
} from '../../../src/api/request/request-info.ts'

/**
 * Verb, group/version/resource, namespace, name and subresource in one line; '-' where there is
 * none.
 */
function told(method: string, url: string): string {
  const info = parseRequestInfo(method, url)
  if (!info.isResource) return `${info.verb} ${info.path}`
  const { group, version, resource } = info.gvr
  const { namespace = '-', name = '-', subresource = '-' } = info
  return `${info.verb} ${group}/${version}/${resource} ${namespace} ${name} ${subresource}`
}

const resource = (url: string, method = 'GET'): ResourceRequest => {
  const info = parseRequestInfo(method, url)
  if (!info.isResource) throw new Error(`${url} is no resource`)
  return info
}

void t.test('a path names group, version, resource, namespace, name and subresource', async (t) => {
  const table: [string, string, string][] = [
    ['GET', '/api/v1/nodes', 'list /v1/nodes - - -'],
    ['GET', '/api/v1/nodes/n1', 'get /v1/nodes - n1 -'],
    ['PATCH', '/api/v1/nodes/n1/status', 'patch /v1/nodes - n1 status'],
    ['GET', '/api/v1/namespaces/ns/pods', 'list /v1/pods ns - -'],
    ['GET', '/api/v1/namespaces/ns/pods/p', 'get /v1/pods ns p -'],
    ['POST', '/api/v1/namespaces/ns/pods/p/eviction', 'create /v1/pods ns p eviction'],
    ['PUT', '/api/v1/namespaces/ns/pods/p/status', 'update /v1/pods ns p status'],
    [
      'POST',
      '/api/v1/namespaces/ns/serviceaccounts/sa/token',
      'create /v1/serviceaccounts ns sa token',
    ],
    [
      'GET',
      '/apis/apps/v1/namespaces/ns/deployments/d/scale',
      'get apps/v1/deployments ns d scale',
    ],
    ['GET', '/apis/storage.k8s.io/v1/csinodes/n1', 'get storage.k8s.io/v1/csinodes - n1 -'],
    [
      'GET',
      '/apis/apps.openyurt.io/v1beta2/nodepools',
      'list apps.openyurt.io/v1beta2/nodepools - - -',
    ],
    ['HEAD', '/api/v1/nodes/n1', 'get /v1/nodes - n1 -'],
    ['GET', '/api/v1/pods/', 'list /v1/pods - - -'],
  ]
  for (const [method, url, expected] of table)
    t.equal(told(method, url), expected, `${method} ${url}`)
})

void t.test(
  'a namespace is an object too, with status and finalize as its subresources',
  async (t) => {
    const table: [string, string, string][] = [
      ['GET', '/api/v1/namespaces', 'list /v1/namespaces - - -'],
      ['POST', '/api/v1/namespaces', 'create /v1/namespaces - - -'],
      ['GET', '/api/v1/namespaces/ns', 'get /v1/namespaces - ns -'],
      ['PUT', '/api/v1/namespaces/ns/finalize', 'update /v1/namespaces - ns finalize'],
      ['PATCH', '/api/v1/namespaces/ns/status', 'patch /v1/namespaces - ns status'],
      ['GET', '/api/v1/namespaces/ns/statuses', 'list /v1/statuses ns - -'],
    ]
    for (const [method, url, expected] of table)
      t.equal(told(method, url), expected, `${method} ${url}`)
  },
)

void t.test('a resource called namespaces within a namespace keeps its namespace', async (t) => {
  t.equal(
    told('GET', '/apis/example.com/v1/namespaces/a/namespaces'),
    'list example.com/v1/namespaces a - -',
  )
  t.equal(
    told('GET', '/apis/example.com/v1/namespaces/a/namespaces/b'),
    'get example.com/v1/namespaces a b -',
  )
})

void t.test('a delete without a name is a deletecollection', async (t) => {
  t.equal(told('DELETE', '/api/v1/namespaces/ns/pods'), 'deletecollection /v1/pods ns - -')
  t.equal(told('DELETE', '/api/v1/namespaces/ns/pods/p'), 'delete /v1/pods ns p -')
})

void t.test(
  'a list is a watch unless watch is absent, false or 0, as the API converts it',
  async (t) => {
    const list = 'list /v1/pods - - -'
    const watch = 'watch /v1/pods - - -'
    const table: [string, string][] = [
      ['', list],
      ['?', list],
      ['?watch=false', list],
      ['?watch=False', list],
      ['?watch=0', list],
      ['?watch', watch],
      ['?watch=', watch],
      ['?watch=1', watch],
      ['?watch=true', watch],
      ['?watch=yes', watch],
      ['?watch=f', watch],
      ['?watch=false&watch=true', list],
      ['?watch=true&watch=false', watch],
      ['?%77atch=true', watch],
      ['?limit=1&watch=true', watch],
    ]
    for (const [query, expected] of table)
      t.equal(told('GET', `/api/v1/pods${query}`), expected, query)
    t.equal(isTrue(null), false)
  },
)

void t.test('watch is ignored if the path names an object', async (t) => {
  t.equal(told('GET', '/api/v1/nodes/n1?watch=true'), 'get /v1/nodes - n1 -')
  t.equal(told('POST', '/api/v1/nodes?watch=true'), 'create /v1/nodes - - -')
})

void t.test('the old watch prefix makes a watch of a list and of a get', async (t) => {
  t.equal(told('GET', '/api/v1/watch/pods'), 'watch /v1/pods - - -')
  t.equal(told('GET', '/api/v1/watch/pods?watch=false'), 'watch /v1/pods - - -')
  t.equal(
    told('GET', '/apis/apps/v1/watch/namespaces/ns/deployments'),
    'watch apps/v1/deployments ns - -',
  )
})

void t.test('a name behind the old watch prefix is the selector of that name', async (t) => {
  const selected = (url: string): unknown[] => {
    const { verb, namespace, name, query } = resource(url)
    return [verb, namespace, name, query.get('fieldSelector')]
  }
  const one = ['watch', 'ns', undefined, 'metadata.name=p']
  t.strictSame(selected('/api/v1/watch/namespaces/ns/pods/p'), one)
  t.strictSame(selected('/api/v1/watch/namespaces/ns/pods/p?fieldSelector='), one)
  t.strictSame(
    selected('/apis/rbac.authorization.k8s.io/v1/watch/clusterroles/a%2Cb%3Dc'),
    ['watch', undefined, undefined, 'metadata.name=a\\,b\\=c'],
    'as a selector writes it',
  )
  t.strictSame(
    selected('/api/v1/watch/namespaces/ns/pods/p?fieldSelector=status.phase%3DRunning'),
    ['watch', 'ns', 'p', 'status.phase=Running'],
    'but for one that has another, which an API server refuses',
  )
})

void t.test('a proxy subresource ends the resource path', async (t) => {
  const table: [string, string][] = [
    ['/api/v1/namespaces/ns/services/web:80/proxy', 'get /v1/services ns web:80 proxy'],
    [
      '/api/v1/namespaces/ns/services/https:web:443/proxy/a/b?watch=1',
      'get /v1/services ns https:web:443 proxy',
    ],
    ['/api/v1/namespaces/ns/services/web/proxy/a%2Fb', 'get /v1/services ns web proxy'],
    ['/api/v1/namespaces/ns/services/web/proxy//a//b', 'get /v1/services ns web proxy'],
    ['/api/v1/namespaces/ns/pods/p/proxy/pods/q/status', 'get /v1/pods ns p proxy'],
    ['/api/v1/nodes/n1/proxy/stats/summary', 'get /v1/nodes - n1 proxy'],
  ]
  for (const [url, expected] of table) t.equal(told('GET', url), expected, url)
})

void t.test('everything else is no resource request', async (t) => {
  const table: [string, string, string][] = [
    ['GET', '/', 'get /'],
    ['GET', '/api', 'get /api'],
    ['GET', '/api/v1', 'get /api/v1'],
    ['GET', '/api/v1/', 'get /api/v1/'],
    ['GET', '/apis/apps/v1', 'get /apis/apps/v1'],
    ['GET', '/healthz', 'get /healthz'],
    ['GET', '/openapi/v3/apis/apps/v1?hash=1', 'get /openapi/v3/apis/apps/v1'],
    ['GET', '/version?timeout=32s', 'get /version'],
    ['GET', '/API/v1/pods', 'get /API/v1/pods'],
    ['OPTIONS', '/api/v1/pods', 'options /api/v1/pods'],
  ]
  for (const [method, url, expected] of table)
    t.equal(told(method, url), expected, `${method} ${url}`)
})

void t.test('an ambiguous path has no resource', async (t) => {
  for (const url of [
    '/api/v1/namespaces/a%2Fb/pods',
    '/api/v1/namespaces/a/pods/p%2Fstatus',
    '/api/v1/namespaces/a/pods/p%2fstatus',
    '/api%2Fv1/pods',
    '/api/v1/pods%00',
    '/api/v1/namespaces/../nodes',
    '/api/v1/namespaces/./pods',
    '/api/v1/namespaces/%2e%2e/nodes',
    '/api/v1/namespaces/.%2E/nodes',
    '/api/v1/nodes/n1/proxy/../../secrets',
    '/api/v1/nodes/n1/proxy/%2e%2e/x',
    '/api/v1/nodes/n1/proxy/a%00',
    '/api/v1//pods',
    '//api/v1/pods',
    '/api/v1/namespaces//pods',
    '/api/v1/pods//',
    '/apis/../version',
    '/healthz%2F..',
    '/api/v1/pods/%c0%af',
  ]) {
    const { query: _query, ...info } = parseRequestInfo('GET', url)
    t.strictSame(info, { isResource: false, path: url, verb: 'get', ambiguous: true }, url)
  }
})

void t.test('a bad escape is refused', async (t) => {
  for (const url of ['/api/v1/pods/%zz', '/api/v1/pods/%', '/%2', '/../%zz']) {
    t.throws(() => parseRequestInfo('GET', url), { code: 'MALFORMED_PATH' }, url)
  }
})

void t.test('a request target that is not a path is refused', async (t) => {
  for (const url of ['http://other/api/v1/pods', '*', '', 'api/v1/pods']) {
    t.throws(() => parseRequestInfo('GET', url), { code: 'MALFORMED_PATH' }, url)
  }
})

void t.test('an escaped segment is read once', async (t) => {
  t.equal(resource('/api/v1/nodes/n%31').name, 'n1')
  t.equal(resource('/api/v1/nodes/n%2531').name, 'n%31')
  t.equal(resource('/%61pi/v1/pods').gvr.resource, 'pods')
})

void t.test('the path stays as sent, and the query is parsed', async (t) => {
  const info = resource('/api/v1/nodes/n%31?fieldSelector=metadata.name%3Dx%2Cspec.y%3Dz&a=?b')
  t.equal(info.path, '/api/v1/nodes/n%31')
  t.equal(info.query.get('fieldSelector'), 'metadata.name=x,spec.y=z')
  t.equal(info.query.get('a'), '?b')
})

void t.test('a field selector on metadata.name limits a request to one name', async (t) => {
  const named = (selector: string): string | undefined =>
    namedBySelector(resource(`/api/v1/nodes?fieldSelector=${encodeURIComponent(selector)}`))
  t.equal(named('metadata.name=n1'), 'n1')
  t.equal(named('metadata.name==n1'), 'n1')
  t.equal(named('spec.a=b,metadata.name=n1'), 'n1')
  t.equal(named(String.raw`metadata.name=a\,b\=c,spec.a=b`), 'a,b=c')
  t.equal(named('metadata.name!=n1'), undefined)
  t.equal(named('xmetadata.name=n1'), undefined)
  t.equal(named('metadataXname=n1'), undefined)
  t.equal(named(''), undefined)
})
