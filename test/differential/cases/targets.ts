import { get, own, shared, write, type RequestCase } from '../request-case.ts'

const core = `/api/v1/namespaces/${shared}`
const maps = `${core}/configmaps`

/** Paths that two readers could read in two ways. */
const paths: readonly RequestCase[] = [
  '/api/v1/namespaces/../nodes',
  `${core}/../${shared}/configmaps`,
  `${core}/./configmaps`,
  '/api/v1/namespaces/%2e%2e/pods',
  `/..`,
  `/../api/v1/nodes`,
  `//api/v1/nodes`,
  `/api//v1/nodes`,
  '/api/v1//nodes',
  `${maps}//cm-1`,
  `${maps}/cm-1//`,
  `/api/v1/namespaces/a%2Fb/pods`,
  `/api/v1/namespaces/${shared}%2Fconfigmaps`,
  `${maps}/cm%2F1`,
  `${maps}%2Fcm-1`,
  '/api%2Fv1/nodes',
  '/%61pi/v1/nodes',
  `${maps}/cm-1%00`,
  `${maps}/%c0%af`,
  `${maps}/%ff`,
  `${maps}/cm-1%20`,
  `${maps}/cm-1;x=1`,
  `${maps}/cm-1%3Fwatch=true`,
  `${maps}/cm-1#fragment`,
  '/API/v1/nodes',
  '/api/v1/Nodes',
  '/api/v1/nodes/',
  '/apis/apps//v1/deployments',
  '/healthz/',
  '/healthz/..',
  '/healthz%2F..',
  '//',
  '/.',
  `/api/v1/nodes/edge-1/proxy/../../secrets`,
  `${core}/services/web/proxy/%2e%2e/x`,
].map((target) => get(target))

/** The same, where they would change something. */
const writes: readonly RequestCase[] = [
  write('POST', `/api/v1/namespaces/${own}/../${own}/configmaps`, { metadata: { name: 'odd' } }),
  write('POST', `/api/v1//namespaces/${own}/configmaps`, { metadata: { name: 'odd' } }),
  write('POST', `/api/v1/namespaces%2F${own}/configmaps`, { metadata: { name: 'odd' } }),
  write('DELETE', `/api/v1/namespaces/${own}/configmaps/../configmaps/odd`),
]

/** Methods beyond those of the API, on a collection, an object, a document and nothing. */
const methods: readonly RequestCase[] = [
  ...['HEAD', 'OPTIONS', 'TRACE', 'PROPFIND', 'PUT', 'LINK', 'M-SEARCH', 'SEARCH'].flatMap(
    (method) =>
      [maps, `${maps}/cm-1`, '/version', '/nowhere', '/api/v1'].map((target) => ({
        method,
        target,
      })),
  ),
  { method: 'HEAD', target: `${maps}/nothing` },
  { method: 'HEAD', target: `${maps}?limit=1` },
  { method: 'HEAD', target: '/api' },
  { method: 'OPTIONS', target: maps, headers: { Accept: 'application/yaml' } },
]

const only = 'kube-apiserver'
const unknown = { name: 'methods', code: 400 } as const
const tunnel = { name: 'methods', code: 405 } as const
const noPath = { name: 'targets', code: 400 } as const

/**
 * Methods that Node's parser does not know, or does not take for requests; the sandbox has the same
 * parser.
 */
const odd: readonly RequestCase[] = [
  { method: 'FOO', target: maps, differs: unknown, only },
  { method: 'FOO', target: '/version', differs: unknown, only },
  { method: 'get', target: maps, differs: unknown, only },
  { method: 'CONNECT', target: 'HOST', differs: tunnel, only },
  { method: 'CONNECT', target: '127.0.0.1:22', differs: tunnel, only },
  { ...get(`${maps}/\xe9`), differs: { name: 'parsing', code: 400 }, only },
]

/** Targets that are no path (RFC 9112 section 3.2). */
const forms: readonly RequestCase[] = [
  { method: 'OPTIONS', target: '*', only },
  { method: 'OPTIONS', target: '*', headers: { Authorization: 'Bearer rubbish' }, only },
  { ...get(`http://HOST${maps}`), only },
  { ...get(`https://HOST${maps}/cm-1`), only },
  { ...get('*'), differs: noPath, only },
  { ...get('http://HOST'), differs: noPath, only },
  { ...get('http://HOST?watch=true'), differs: noPath, only },
  { ...get(`http://elsewhere.example${maps}`), differs: noPath, only },
  { ...get(`ftp://HOST${maps}`), differs: noPath, only },
  { ...get('api/v1/nodes'), only },
  { ...get(`${maps}/cm-1%zz`), only },
  { ...get(`${maps}/%`), only },
  { ...get('?watch=true'), only },
]

export const targets: readonly RequestCase[] = [
  ...paths,
  ...writes,
  ...methods,
  ...[...odd, ...forms].map((request) => ({ ...request, http1: true as const })),
]
