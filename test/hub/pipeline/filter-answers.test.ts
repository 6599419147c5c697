import t from 'tap'
import { builtInFilters } from '../../../filters/index.ts'
import type { ListStream } from '../../../src/api/codec/list.ts'
import type { WatchEvent } from '../../../src/api/codec/watch.ts'
import { BrokenStream, Chunks } from '../../../src/http/exchange/chunks.ts'
import type { Exchange, ListReply, Reply, WatchReply } from '../../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { Filters } from '../../../src/hub/filter/filters.ts'
import type { FilterDefinition } from '../../../src/hub/filter/filter.ts'
import { withEncoding } from '../../../src/hub/pipeline/encoding.ts'
import { withFilters } from '../../../src/hub/pipeline/filter-answers.ts'
import { objectRepresentation } from '../../../src/api/request/representation.ts'
import { filteringOf } from '../../kit/filtering.ts'
import { inputsOf } from '../../kit/inputs.ts'
import { exchangeOf } from '../../kit/exchange.ts'

const hubAddress = { host: '192.0.2.1', port: 10_268, forService: true }
const filters = new Filters(builtInFilters, inputsOf({ hubAddress }), {
  onFailure: () => undefined,
  warn: () => undefined,
})
const services = exchangeOf('/api/v1/services', {
  headers: { Accept: 'application/vnd.kubernetes.protobuf' },
})

/**
 * A list of services in protobuf, which is staged before it is sent; `breaks` says whether it does
 * in the middle.
 */
function list(breaks: boolean): ListReply {
  const stream: ListStream = {
    gvk: { group: '', version: 'v1', kind: 'ServiceList' },
    head: [Buffer.from('head')],
    batches: (async function* () {
      yield { objects: [] }
      if (breaks) throw new BrokenStream(new Error('the connection was reset'))
    })(),
    end: async () => ({ meta: { resourceVersion: '7', continue: '' }, extra: '', tail: [] }),
  }
  const headers = new HeaderList()
  return {
    kind: 'list',
    status: 200,
    headers,
    from: 'cloud',
    representation: objectRepresentation('protobuf'),
    list: stream,
  }
}

/** Answers each request with the next of `replies`. */
function asked(...replies: Reply[]): {
  count: () => number
  next: (exchange: Exchange) => Promise<Reply>
} {
  let count = 0
  const next = async (): Promise<Reply> => {
    const reply = replies[count]
    count += 1
    if (!reply) throw new Error('one request too many')
    return reply
  }
  return { count: () => count, next }
}

void t.test('a list that breaks off while it is staged is requested once more', async (t) => {
  const cloud = asked(list(true), list(false))
  const reply = await withFilters(filteringOf(filters))(cloud.next)(services)
  t.match(reply, { kind: 'list', status: 200 })
  t.equal(cloud.count(), 2)
})

void t.test('a list that breaks off twice fails with BROKEN_ANSWER', async (t) => {
  const cloud = asked(list(true), list(true))
  await t.rejects(withFilters(filteringOf(filters))(cloud.next)(services), {
    code: 'BROKEN_ANSWER',
  })
})

void t.test('an object that a filter withholds is answered like an absent one', async (t) => {
  const none: FilterDefinition = {
    name: 'none',
    rules: [{ components: ['kubelet'], group: '', resources: ['services'], verbs: ['get'] }],
    onError: 'pass',
    needs: [],
    create: () => () => 'withhold',
  }
  const chain = new Filters([none], inputsOf({ hubAddress }), {
    onFailure: () => undefined,
    warn: () => undefined,
  })
  const service: Reply = {
    kind: 'object',
    status: 200,
    headers: new HeaderList(),
    from: 'cache',
    representation: objectRepresentation('json'),
    gvk: { group: '', version: 'v1', kind: 'Service' },
    object: {
      namespace: 'default',
      name: 'hidden',
      uid: 'u',
      resourceVersion: '7',
      bytes: Buffer.from('{"metadata":{"name":"hidden","namespace":"default"}}'),
    },
  }
  const request = exchangeOf('/api/v1/namespaces/default/services/hidden')
  const refused = await withFilters(filteringOf(chain))(asked(service).next)(request).catch(
    (error: unknown) => error,
  )
  t.match(refused, {
    status: { code: 404, reason: 'NotFound', details: { name: 'hidden', kind: 'services' } },
  })
})

void t.test('an event is filtered and encoded once for several watches', async (t) => {
  let judged = 0
  const marking: FilterDefinition = {
    name: 'marking',
    rules: [{ components: ['kubelet'], group: '', resources: ['services'], verbs: ['watch'] }],
    onError: 'pass',
    needs: [],
    create: () => () => {
      judged += 1
      return [{ op: 'set', path: ['metadata', 'labels', 'marked'], value: 'yes' }]
    },
  }
  const chain = new Filters([marking], inputsOf({ hubAddress }), {
    onFailure: () => undefined,
    warn: () => undefined,
  })
  const event: WatchEvent = {
    type: 'ADDED',
    object: {
      namespace: 'default',
      name: 'a',
      uid: 'u',
      // Two versions would be distinguished; none is not remembered by the chain itself.
      resourceVersion: '',
      bytes: Buffer.from('{"metadata":{"name":"a","labels":{}}}'),
    },
  }
  const watch = exchangeOf('/api/v1/services?watch=1')
  const frames: Uint8Array[] = []
  for (const _ of [1, 2]) {
    const reply: WatchReply = {
      kind: 'watch',
      status: 200,
      headers: new HeaderList(),
      from: 'cache',
      representation: () => objectRepresentation('json'),
      gvk: () => ({ group: '', version: 'v1', kind: 'Service' }),
      events: (async function* () {
        yield [event]
      })(),
      isShared: true,
    }
    const handler = withEncoding(() => undefined)(
      withFilters(filteringOf(chain))(asked(reply).next),
    )
    const encoded = await handler(watch)
    if (encoded.kind !== 'bytes') throw new Error('it is no watch')
    for await (const group of new Chunks(encoded.source)) frames.push(...group)
  }
  t.equal(judged, 1)
  const [one, other] = frames
  t.match(one?.toString(), /"labels":\{"marked":"yes"\}/)
  t.equal(one, other, 'the same bytes, not equal ones')
})

const waiting: FilterDefinition<'pool'> = {
  name: 'waiting',
  rules: [
    {
      components: ['kubelet'],
      group: '',
      resources: ['services'],
      verbs: ['get', 'list', 'patch'],
    },
  ],
  onError: 'pass',
  needs: ['pool'],
  awaits: ['pool'],
  create: () => () => 'leave',
}

const telling = { onFailure: () => undefined, warn: () => undefined }

void t.test('reads wait, and are not forwarded, while a filter lacks its inputs', async (t) => {
  const chain = new Filters([waiting], inputsOf(), telling)
  const cloud = asked(list(false), list(false))
  const handler = withFilters(filteringOf(chain))(cloud.next)
  const leaving = new AbortController()
  const refused = handler(exchangeOf('/api/v1/services', { signal: leaving.signal }))
  leaving.abort()
  const error = (await refused.catch((cause: unknown) => cause)) as { status: object }
  t.match(error.status, { code: 503, reason: 'ServiceUnavailable', message: /pool/ })
  t.notOk('details' in error.status, 'no Retry-After')
  t.equal(cloud.count(), 0)
  const written = await handler(exchangeOf('/api/v1/services/a', { method: 'PATCH' }))
  t.equal(written.kind, 'list', 'what is written is not held up')
  const answered = handler(services)
  chain.setInputs({ pool: null })
  t.match(await answered, { kind: 'list', status: 200 }, 'who has waited is answered')
})

void t.test('a filter settles objects before any of them is shown', async (t) => {
  const settled = Promise.withResolvers<void>()
  const told: string[] = []
  const settling: FilterDefinition = {
    ...(waiting as FilterDefinition),
    awaits: [],
    create: () => ({
      filter: () => {
        told.push('judged')
        return 'leave'
      },
      before: (objects) => {
        told.push(...objects.map(({ cursor, uid }) => `${cursor.name} ${uid}`))
        return settled.promise
      },
    }),
  }
  const chain = new Filters([settling], inputsOf(), telling)
  const object = {
    namespace: 'default',
    name: 'a',
    uid: 'u',
    resourceVersion: '7',
    bytes: Buffer.from('{"metadata":{"name":"a","namespace":"default"}}'),
  }
  const reply: Reply = {
    kind: 'object',
    status: 200,
    headers: new HeaderList(),
    from: 'cache',
    representation: objectRepresentation('json'),
    gvk: { group: '', version: 'v1', kind: 'Service' },
    object,
  }
  const unsettled: ListReply = {
    ...list(false),
    representation: objectRepresentation('json'),
    list: {
      ...list(false).list,
      batches: (async function* () {
        yield { objects: [object] }
      })(),
    },
  }
  const handler = withFilters(filteringOf(chain))(asked(reply, unsettled).next)
  const url = '/api/v1/namespaces/default/services/a'
  const answered = handler(exchangeOf(url)).finally(() => told.push('answered'))
  settled.resolve()
  await answered
  t.strictSame(told, ['a u', 'judged', 'answered'])
  const failing: FilterDefinition = {
    ...settling,
    create: () => ({ filter: () => 'leave', before: () => Promise.reject(new Error('no disk')) }),
  }
  chain.setDefinitions([failing])
  const refused = await handler(exchangeOf('/api/v1/services')).catch((cause: unknown) => cause)
  t.match(refused, { status: { code: 503 } }, 'a list that cannot be shown is refused')
})

void t.test('a list is settled in one go, and none of it is filtered before', async (t) => {
  const onDisk = Promise.withResolvers<void>()
  const lastAsked = Promise.withResolvers<void>()
  let [asked, judged] = [0, 0]
  const settling: FilterDefinition = {
    ...(waiting as FilterDefinition),
    awaits: [],
    create: () => ({
      filter: () => {
        judged += 1
        return 'leave'
      },
      before: (objects) => {
        asked += objects.length
        if (asked === 3) lastAsked.resolve()
        return onDisk.promise
      },
    }),
  }
  const batches = ['a', 'b', 'c'].map((name) => {
    const bytes = Buffer.from(`{"metadata":{"name":"${name}"}}`)
    return { objects: [{ namespace: '', name, uid: name, resourceVersion: '7', bytes }] }
  })
  const stream = list(false)
  const handler = withFilters(filteringOf(new Filters([settling], inputsOf(), telling)))
  const answered = handler(async () => ({
    ...stream,
    representation: objectRepresentation('json'),
    list: { ...stream.list, batches: inTurn(batches) },
  }))(exchangeOf('/api/v1/services'))
  // The first batch is not waited for before the last one is settled, too.
  await lastAsked.promise
  t.equal(judged, 0)
  onDisk.resolve()
  t.match(await answered, { kind: 'list', status: 200 })
  t.equal(judged, 3)
})

async function* inTurn<T>(all: readonly T[]): AsyncGenerator<T> {
  yield* all
}
