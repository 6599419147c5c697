import t from 'tap'
import type { RecordingPlan } from '../../../src/hub/cache/recorder.ts'
import {
  asNotOlderThan,
  consistentUrl,
  consistentWatchListUrl,
  notOlderThanUrl,
  lastObservedFor,
  requiresUpstream,
} from '../../../src/hub/pipeline/freshness.ts'
import type { Exchange } from '../../../src/http/exchange/exchange.ts'
import {
  objectRepresentation,
  type RepresentationKey,
} from '../../../src/api/request/representation.ts'
import { resourceVersion } from '../../../src/api/kube/resource-version.ts'
import { parseRequestInfo, type ResourceRequest } from '../../../src/api/request/request-info.ts'

const asked = (url: string, method = 'GET'): Exchange =>
  ({ method, url, info: parseRequestInfo(method, url) }) as Exchange

void t.test('reads without a version and writes require an upstream', async (t) => {
  for (const url of [
    '/api/v1/pods',
    '/api/v1/pods?resourceVersion=',
    '/api/v1/pods?limit=500&continue=x',
    '/api/v1/namespaces/default/pods/a',
    '/api/v1/namespaces/default/pods/a/status',
    '/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan',
  ]) {
    t.equal(requiresUpstream(asked(url)), true, url)
  }
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    t.equal(requiresUpstream(asked('/api/v1/pods', method)), true, method)
  }
})

void t.test('the cache may answer reads with a version, watches, and documents', async (t) => {
  for (const url of [
    '/api/v1/pods?resourceVersion=0',
    '/api/v1/pods?resourceVersion=7',
    '/api/v1/namespaces/default/pods/a?resourceVersion=0',
    '/api/v1/pods?watch=1',
    '/api/v1/pods?watch=1&resourceVersion=7',
    '/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersion=7',
    '/api',
    '/version',
  ]) {
    t.equal(requiresUpstream(asked(url)), false, url)
  }
})

const [json, protobuf] = [objectRepresentation('json').key, objectRepresentation('protobuf').key]

const wanted = (
  url: string,
  kept: readonly (readonly [RepresentationKey, string | undefined])[],
  kind: 'list' | 'watch' = 'list',
): RecordingPlan => ({
  kind,
  info: parseRequestInfo('GET', url) as ResourceRequest,
  storedVersions: new Map(kept),
})

void t.test('a list of any age is not older than the newest observed list', async (t) => {
  const list = '/api/v1/pods?resourceVersion=0'
  const both = [
    [protobuf, '99'],
    [json, '100'],
  ] as const
  t.equal(lastObservedFor(wanted(list, both)), '100')
  t.equal(
    lastObservedFor(wanted(`${list}&resourceVersionMatch=NotOlderThan&limit=500`, both)),
    '100',
  )
  t.equal(lastObservedFor(wanted(list, [[json, undefined]])), undefined, 'nothing was observed')
  for (const [shared, newest] of [
    ['99', '100'],
    ['101', '101'],
  ] as const) {
    t.equal(
      lastObservedFor(wanted(list, both), () => resourceVersion(shared)),
      newest,
    )
  }
  t.equal(lastObservedFor(wanted(list, [[json, 'x1']])), undefined, 'what is no version is none')
  for (const url of [
    '/api/v1/pods',
    '/api/v1/pods?resourceVersion=5',
    `${list}&continue=x`,
    `${list}&resourceVersionMatch=Exact`,
  ]) {
    t.equal(lastObservedFor(wanted(url, both)), undefined, url)
  }
  t.equal(
    lastObservedFor(wanted(`${list}&limit=x`, both)),
    undefined,
    'what is refused stays as it is',
  )
  t.equal(lastObservedFor(wanted(`${list}&watch=1`, both, 'watch')), undefined)
  const watchList = `${list}&watch=1&sendInitialEvents=true`
  t.equal(lastObservedFor(wanted(watchList, both, 'watch')), undefined, 'is refused')
  const match = 'resourceVersionMatch=NotOlderThan'
  t.equal(lastObservedFor(wanted(`${watchList}&${match}`, both, 'watch')), '100')
  t.equal(lastObservedFor({ kind: 'document' }), undefined)
})

void t.test('a list of any age is not older than any observed object', async (t) => {
  const list = wanted('/api/v1/pods?resourceVersion=0', [[json, '100']])
  t.equal(lastObservedFor({ ...list, lastObserved: resourceVersion('105') }), '105')
  t.equal(lastObservedFor({ ...list, lastObserved: resourceVersion('99') }), '100')
})

void t.test('a read becomes NotOlderThan, where that does not change its meaning', async (t) => {
  const seven = resourceVersion('7')
  if (seven === undefined) throw new Error('seven is a version')
  const least = (url: string): string | undefined => asNotOlderThan(asked(url), seven)?.url
  const [match, pods] = ['resourceVersionMatch=NotOlderThan', '/api/v1/pods']
  t.equal(least(`${pods}?resourceVersion=0&limit=5`), `${pods}?resourceVersion=7&${match}`)
  t.equal(least(`${pods}?resourceVersion=6`), `${pods}?resourceVersion=7&${match}`)
  t.equal(
    least(`${pods}?watch=1&resourceVersion=0`),
    `${pods}?watch=1&resourceVersion=7&${match}&sendInitialEvents=true`,
  )
  for (const url of [`${pods}?resourceVersion=8`, `${pods}?resourceVersion=7&${match}`]) {
    t.equal(least(url), url, 'names a newer one')
  }
  for (const url of [
    `${pods}?resourceVersion=0&continue=x`,
    `${pods}?resourceVersion=6&limit=5`,
    `${pods}?resourceVersion=6&resourceVersionMatch=Exact`,
    `${pods}?resourceVersion=0&limit=x`,
    `${pods}?watch=1&resourceVersion=6`,
    `${pods}?watch=1&resourceVersion=0&sendInitialEvents=false&${match}`,
    '/api/v1/namespaces/default/pods/a?resourceVersion=0',
    '/version',
  ]) {
    t.equal(least(url), undefined, url)
  }
})

void t.test('NotOlderThan and consistent URLs lose what only any age allows', async (t) => {
  const seven = resourceVersion('7')
  if (seven === undefined) throw new Error('seven is a version')
  const url = '/api/v1/pods?fieldSelector=spec.nodeName%3Da&limit=500&resourceVersion=0'
  t.equal(
    notOlderThanUrl(url, seven),
    '/api/v1/pods?fieldSelector=spec.nodeName%3Da&resourceVersion=7&resourceVersionMatch=NotOlderThan',
  )
  t.equal(consistentUrl(url), '/api/v1/pods?fieldSelector=spec.nodeName%3Da')
  t.equal(consistentUrl('/api/v1/pods?resourceVersion=0'), '/api/v1/pods')
  t.equal(
    consistentWatchListUrl(
      '/api/v1/pods?watch=1&sendInitialEvents=1&resourceVersion=0&resourceVersionMatch=NotOlderThan',
    ),
    '/api/v1/pods?watch=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan',
  )
})
