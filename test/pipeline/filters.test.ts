import t from 'tap'
import { builtInFilters } from '../../filters/index.ts'
import type { ListStream } from '../../src/codec/list.ts'
import type { Exchange, ListReply, Reply } from '../../src/exchange/exchange.ts'
import { HeaderList } from '../../src/exchange/headers.ts'
import { filterChain } from '../../src/filter/chain.ts'
import type { FilterDefinition } from '../../src/filter/filter.ts'
import { withFilters } from '../../src/pipeline/filters.ts'
import { objectForm } from '../../src/request/form.ts'
import { exchangeOf } from '../kit/exchange.ts'

const hubAddress = { host: '192.0.2.1', port: 10_268 }
const filters = filterChain(builtInFilters, { hubAddress, warn: () => undefined }, () => undefined)
const services = exchangeOf('/api/v1/services', {
  headers: { Accept: 'application/vnd.kubernetes.protobuf' },
})

/** A list of services in protobuf, which is staged before it is sent; `breaks` says whether it does in the middle. */
function list(breaks: boolean): ListReply {
  const stream: ListStream = {
    gvk: { group: '', version: 'v1', kind: 'ServiceList' },
    head: [Buffer.from('head')],
    batches: (async function* () {
      yield { objects: [] }
      if (breaks) throw new Error('the connection was reset')
    })(),
    end: async () => ({ meta: { resourceVersion: '7', continue: '' }, extra: '', tail: [] }),
  }
  const headers = new HeaderList()
  return {
    kind: 'list',
    status: 200,
    headers,
    from: 'cloud',
    form: objectForm('protobuf'),
    list: stream,
  }
}

/** Answers each time it is asked as the next of `replies` says. */
function asked(...replies: Reply[]): {
  count: () => number
  next: (exchange: Exchange) => Promise<Reply>
} {
  let count = 0
  const next = async (): Promise<Reply> => {
    const reply = replies[count]
    count += 1
    if (!reply) throw new Error('asked once too often')
    return reply
  }
  return { count: () => count, next }
}

void t.test('a list that breaks off while it is staged is asked for once more', async (t) => {
  const cloud = asked(list(true), list(false))
  const reply = await withFilters(filters)(cloud.next)(services)
  t.match(reply, { kind: 'list', status: 200 })
  t.equal(cloud.count(), 2)
})

void t.test('and is a failure that was foreseen when it breaks off again', async (t) => {
  const cloud = asked(list(true), list(true))
  await t.rejects(withFilters(filters)(cloud.next)(services), { code: 'BROKEN_ANSWER' })
})

void t.test('an object that a filter withholds is answered as one that is not there', async (t) => {
  const none: FilterDefinition = {
    name: 'none',
    rules: [{ components: ['kubelet'], group: '', resources: ['services'], verbs: ['get'] }],
    onError: 'pass',
    create: () => () => 'withhold',
  }
  const chain = filterChain([none], { hubAddress, warn: () => undefined }, () => undefined)
  const service: Reply = {
    kind: 'object',
    status: 200,
    headers: new HeaderList(),
    from: 'cache',
    form: objectForm('json'),
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
  const refused = await withFilters(chain)(asked(service).next)(request).catch(
    (error: unknown) => error,
  )
  t.match(refused, {
    status: { code: 404, reason: 'NotFound', details: { name: 'hidden', kind: 'services' } },
  })
})
