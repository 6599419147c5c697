import t from 'tap'
import { builtInFilters } from '../../../filters/index.ts'
import type { ListStream } from '../../../src/api/codec/list.ts'
import { BrokenStream } from '../../../src/http/exchange/chunks.ts'
import type { Exchange, ListReply, Reply } from '../../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import type { FilterDefinition } from '../../../src/hub/filter/filter.ts'
import { withFilters } from '../../../src/hub/pipeline/filter-answers.ts'
import { objectRepresentation } from '../../../src/api/request/representation.ts'
import { filteringOf } from '../../kit/filtering.ts'
import { filtersOf } from '../../kit/inputs.ts'
import { exchangeOf } from '../../kit/exchange.ts'

const hubAddress = { host: '192.0.2.1', port: 10_268, forService: true }
const filters = filtersOf(builtInFilters, { hubAddress })
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

void t.test('whole objects are filtered where the client prefers a table', async (t) => {
  const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'
  const asking = exchangeOf('/api/v1/services', {
    headers: { Accept: `${table},application/json` },
  })
  const ask = (representation: ListReply['representation'] | undefined): Promise<Reply> => {
    if (!representation) throw new Error('it accepts two')
    return withFilters(filteringOf(filters))(asked({ ...list(false), representation }).next)(asking)
  }
  const [parts, whole] = asking.representations
  t.hasProp((await ask(whole)).explanation ?? {}, 'filtered')
  t.equal((await ask(parts)).explanation, undefined)
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

void t.test('reads are not forwarded while a filter lacks its inputs', async (t) => {
  const chain = filtersOf([waiting])
  const cloud = asked(list(false), list(false))
  const known = Promise.withResolvers<void>()
  const ensured = [Promise.resolve(), undefined, known.promise]
  const ensureInputs = (): Promise<void> | undefined => ensured.shift()
  const handler = withFilters({ ...filteringOf(chain), ensureInputs })(cloud.next)
  const error = (await handler(services).catch((cause: unknown) => cause)) as { status: object }
  t.match(error.status, { code: 503, reason: 'ServiceUnavailable', message: /pool/ })
  t.notOk('details' in error.status, 'no Retry-After')
  t.equal(cloud.count(), 0)
  const written = await handler(exchangeOf('/api/v1/services/a', { method: 'PATCH' }))
  t.equal(written.kind, 'list', 'what is written is not held up')
  const answered = handler(services)
  chain.setInputs({ pool: null })
  known.resolve()
  t.match(await answered, { kind: 'list', status: 200 }, 'who has waited is answered')
})
