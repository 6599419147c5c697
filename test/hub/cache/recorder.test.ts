import t from 'tap'
import { event, page, pods, recordingIn } from './recording.ts'

const podA = '/api/v1/namespaces/default/pods/a'

const aAt = (version: number): string =>
  JSON.stringify({
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: { name: 'a', namespace: 'default', uid: 'a', resourceVersion: `${version}` },
  })

void t.test('an answer that comes late takes nothing back', async (t) => {
  await using cache = await recordingIn(t.testdir())
  await cache.list(pods, page(10, { a: 9 }))
  const late = cache.ask(podA)
  await cache.watch('10', event('MODIFIED', 'a', 12))
  await late.answer(aAt(11))
  t.equal(cache.object('a'), '12')
  const gone = cache.ask(podA)
  await cache.watch('12', event('DELETED', 'a', 13))
  await gone.answer(aAt(12))
  t.equal(cache.object('a'), 'absent')
})

void t.test('an object created after a list is there until a list lacks it', async (t) => {
  await using cache = await recordingIn(t.testdir())
  await cache.list(pods, page(100, { b: 90 }))
  await cache.list(podA, aAt(101))
  t.equal(cache.object('a'), '101')
  await cache.list(pods, page(103, { b: 90 }))
  t.equal(cache.object('a'), 'absent')
})

void t.test('an impossible object name is requested like any other', async (t) => {
  await using cache = await recordingIn(t.testdir())
  await cache.list(pods, page(100, { b: 90 }))
  for (const query of ['', '?resourceVersion=0']) {
    await cache.list(`/api/v1/namespaces/default/pods/a%3Fwatch=true${query}`, aAt(101))
  }
  t.strictSame(cache.failures, [])
})

void t.test('an answer that is not one object is passed on, and not recorded', async (t) => {
  await using cache = await recordingIn(t.testdir())
  const spec = (of: string): string => aAt(11).replace(/\}$/, `,"spec":${of}}`)
  for (const malformed of [spec('{"a":"b"'), spec('{"a":"b}'), spec('{}') + '{}']) {
    cache.failures.length = 0
    const reply = await cache.ask(podA).reply(malformed)
    t.match(reply, { kind: 'body', body: Buffer.from(malformed) })
    t.equal(cache.failures.length, 1)
    t.equal(cache.object('a'), undefined)
  }
})

void t.test('a custom resource that is named like a conversion is recorded', async (t) => {
  await using cache = await recordingIn(t.testdir())
  const of = (kind: string, annotations: object): object => ({
    apiVersion: 'example.com/v1',
    kind,
    metadata: { annotations, name: 'a', uid: 'u', resourceVersion: '9' },
  })
  const path = '/apis/example.com/v1/things/a'
  for (const object of [of('Table', {}), of('Thing', { of: 'PartialObjectMetadata' })])
    t.match(await cache.ask(path).reply(JSON.stringify(object)), { kind: 'object' })
})
