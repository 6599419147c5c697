import { get, own, protobuf, shared, write, type RequestCase } from '../request-case.ts'

const core = `/api/v1/namespaces/${shared}`
const maps = `${core}/configmaps`
const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'wrong', namespace: own } }
const ownMaps = `/api/v1/namespaces/${own}/configmaps`
const dry = `${ownMaps}?dryRun=All`

/** More than an API server takes of a body. */
const tooMuch = write('POST', dry, { ...map, data: { a: 'x'.repeat(3.2 * 1024 * 1024) } })

/**
 * Requests that an API server refuses, for each of its reasons; those of callers are in
 * `unauthenticated` and `unauthorized`.
 */
export const errors: readonly RequestCase[] = [
  write('POST', dry, '{'),
  write('POST', dry, ''),
  write('POST', dry),
  write('POST', dry, 'null'),
  write('POST', dry, '[]'),
  write('POST', dry, { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'wrong' } }),
  write('POST', dry, { ...map, metadata: { name: 'No Name' } }),
  write('POST', dry, { ...map, metadata: { name: 'wrong', namespace: 'other' } }),
  write('POST', dry, { ...map, data: { 'bad key': '1' } }),
  write('POST', dry, { ...map, data: { a: 1 } }),
  write('POST', dry, 'x', { 'Content-Type': 'text/plain' }),
  write('POST', dry, 'x', { 'Content-Type': 'rubbish' }),
  write('POST', dry, '\x00', { 'Content-Type': protobuf }),
  write('POST', dry, 'k8s\x00\xff\xff\xff', { 'Content-Type': protobuf, Accept: protobuf }),
  write('POST', dry, map, { 'Content-Type': undefined }),
  write('POST', dry, map, { 'Content-Encoding': 'gzip' }),
  write('POST', dry, map, { Accept: 'image/png' }),
  write('POST', '/api/v1/namespaces/nowhere/configmaps', { ...map, metadata: { name: 'x' } }),
  // The sandbox has Node's words for 413.
  { ...tooMuch, only: 'kube-apiserver' },
  { ...tooMuch, chunked: true, only: 'kube-apiserver' },
  write('PUT', `${maps}/cm-1`),
  write('PATCH', `${maps}/cm-1`, '{}', { 'Content-Type': 'text/plain' }),
  write('PATCH', `${maps}/cm-1`, '{}', { 'Content-Type': undefined }),
  { method: 'PUT', target: core },
  { method: 'POST', target: `${maps}/cm-1`, body: '{}' },
  { method: 'DELETE', target: '/api/v1' },
  { method: 'POST', target: '/api', body: '{}' },
  { method: 'POST', target: '/version', body: '{}' },
  { method: 'PUT', target: '/healthz' },
  { method: 'POST', target: '/nowhere', body: 'x' },
  write('DELETE', '/api/v1/namespaces'),
  write('POST', `${core}/nothings`, {}),
  write('POST', '/apis/nothing.example/v1/things', {}),
  get('/apis/nothing.example/v1/things'),
  get('/api/v1/nothings/x/y/z'),
  get(`${core}/pods/nothing/log`),
  get(`${core}/pods/a/log`),
  get(`${core}/pods/a/log?tailLines=x`),
  get(`${core}/pods/a/log?container=nothing`),
  get(`${core}/services/web/proxy/`),
  get(`${core}/services/nothing/proxy/a//b?c=d`),
  get(`${core}/pods/a/proxy/x`),
  get(`${core}/pods/nothing:8080/proxy/a%2Fb/../c`),
  get('/api/v1/nodes/nothing/proxy/healthz'),
  get('/api/v1/proxy/nodes/edge-1/healthz'),
  get(`${maps}?resourceVersion=1&resourceVersionMatch=Exact`),
  get(`${maps}?resourceVersion=999999999&timeout=1s`),
  get(`${maps}?resourceVersion=999999999&resourceVersionMatch=Exact`),
]

/** What callers send of whom nothing is known, or too little. */
export const unauthenticated: readonly RequestCase[] = [
  get(maps, { Authorization: 'Bearer rubbish' }),
  get(maps, { Authorization: 'Bearer rubbish', Accept: protobuf }),
  get(maps, { Authorization: 'Bearer' }),
  get(maps, { Authorization: 'Basic cm9vdDpyb290' }),
  get(maps, { Authorization: '' }),
  get('/healthz', { Authorization: 'Bearer rubbish' }),
  get('/version', { Authorization: 'Bearer rubbish' }),
  write('POST', ownMaps, map, { Authorization: 'Bearer rubbish' }),
  get(`${maps}?watch=true`, { Authorization: 'Bearer rubbish' }),
]

/**
 * What a service account asks for that may do next to nothing; its token takes the place of TOKEN.
 */
export const unauthorized: readonly RequestCase[] = [
  get(maps),
  get(maps, { Accept: protobuf }),
  get(`${maps}/cm-1`),
  get(`${maps}?watch=true`),
  get('/api/v1/nodes?fieldSelector=metadata.name%3Dedge-1'),
  get('/api'),
  get('/healthz'),
  get('/nowhere'),
  get('/metrics'),
  get(`${core}/pods/a/exec?command=ls`),
  write('POST', ownMaps, map),
  write('PATCH', `${ownMaps}/x`, {}, { 'Content-Type': 'application/merge-patch+json' }),
  write('DELETE', ownMaps),
  write('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'SelfSubjectReview',
  }),
  get(maps, { 'Impersonate-User': 'jane' }),
].map((request) => ({
  ...request,
  headers: { ...request.headers, Authorization: 'Bearer TOKEN' },
}))
