import { get, shared, type RequestCase } from '../request-case.ts'

const core = `/api/v1/namespaces/${shared}`
const maps = `${core}/configmaps`
const proto = 'application/vnd.kubernetes.protobuf'
const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const list = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'

/**
 * Each is over within a second or two, by its own time or by its error. None is from before the hub
 * listed the collection: those may get 410, as docs/design/differences.md says.
 */
export const watches: readonly RequestCase[] = [
  ...[
    'watch=true&timeoutSeconds=1&resourceVersion=0',
    'watch=1&timeoutSeconds=1',
    'watch=true&timeoutSeconds=1&resourceVersion=0&labelSelector=tier%3Dfront',
    'watch=true&timeoutSeconds=1&resourceVersion=0&fieldSelector=metadata.name%3Dcm-2',
    `watch=true&timeoutSeconds=1&${list}`,
    `watch=true&timeoutSeconds=1&${list}&resourceVersion=0`,
    'watch=true&timeoutSeconds=1&sendInitialEvents=true',
    'watch=true&timeoutSeconds=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true',
    'watch=true&timeoutSeconds=1&resourceVersionMatch=Exact&resourceVersion=1',
    'watch=true&timeoutSeconds=1&resourceVersion=x',
    'watch=true&timeoutSeconds=1&resourceVersion=999999999',
    'watch=true&timeoutSeconds=x',
    'watch=true&timeoutSeconds=1&labelSelector=a%20b',
    'watch=true&timeoutSeconds=1&fieldSelector=spec.nothing%3D1',
    'watch=true&timeoutSeconds=1&resourceVersion=0&limit=1',
    'watch=true&timeoutSeconds=1&resourceVersion=0&pretty=true',
    'watch=true&timeoutSeconds=1&continue=x',
    'watch=x&timeoutSeconds=1&resourceVersion=0',
    'watch=&timeoutSeconds=1&resourceVersion=0',
  ].map((query) => get(`${maps}?${query}`)),
  {
    target: `${maps}?watch=true&timeoutSeconds=1&resourceVersion=0&allowWatchBookmarks=true`,
    isWatchListByDefault: true,
  },
  ...[
    proto,
    `${proto},application/json`,
    `${proto};stream=watch`,
    'application/json;stream=watch',
    'application/yaml',
    table,
    `${table},application/json`,
    'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
    `${proto};as=PartialObjectMetadata;v=v1;g=meta.k8s.io`,
    'image/png',
    'application/cbor-seq',
  ].map((accept) =>
    get(`${maps}?watch=true&timeoutSeconds=1&resourceVersion=0`, { Accept: accept }),
  ),
  get(`${maps}?watch=true&timeoutSeconds=1&${list}`, { Accept: table }),
  get(`${maps}?watch=true&timeoutSeconds=1&${list}`, { Accept: proto }),
  get(`${maps}?watch=true&timeoutSeconds=1&resourceVersion=0`, { 'Accept-Encoding': 'gzip' }),
  get(`${maps}/cm-1?watch=true&timeoutSeconds=1`),
  get(
    `/api/v1/pods?watch=true&timeoutSeconds=1&resourceVersion=0&fieldSelector=spec.nodeName%3Dedge-1`,
    { Accept: proto },
  ),
  get(
    `/apis/example.com/v1/namespaces/${shared}/widgets?watch=true&timeoutSeconds=1&resourceVersion=0`,
  ),
  get(`/api/v1/watch/namespaces/${shared}/configmaps?timeoutSeconds=1&resourceVersion=0`),
  get(`/api/v1/watch/namespaces/${shared}/configmaps/cm-1?timeoutSeconds=1&resourceVersion=0`),
  get('/api/v1/watch/nodes?timeoutSeconds=1&resourceVersion=0'),
  get('/api/v1/watch'),
  get(`/api/v1/namespaces/nowhere/configmaps?watch=true&timeoutSeconds=1&resourceVersion=0`),
  get(`${core}/nothings?watch=true&timeoutSeconds=1`),
  { method: 'HEAD', target: `${maps}?watch=true&timeoutSeconds=1&resourceVersion=0` },
  { method: 'POST', target: `${maps}?watch=true&timeoutSeconds=1`, body: '' },
]
