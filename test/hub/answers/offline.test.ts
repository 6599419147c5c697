import t from 'tap'
import type { Exchange } from '../../../src/http/exchange/exchange.ts'
import { StatusError } from '../../../src/api/kube/status.ts'
import { answerLocally } from '../../../src/hub/answers/offline.ts'
import { NodeWrites } from '../../../src/hub/answers/node-writes.ts'
import type { ObjectStore } from '../../../src/hub/store/store.ts'
import { noKubelet } from '../../kit/kubelet-api.ts'
import { exchangeOf } from '../../kit/exchange.ts'

/** A store that knows everything, so that whatever is refused is refused for another reason. */
const omniscient = new Proxy({} as ObjectStore, {
  get: () => () => {
    throw new Error('the store was read')
  },
})

const answer = (exchange: Exchange, store = omniscient): Promise<unknown> =>
  answerLocally(exchange, {
    store,
    nodeName: 'edge-1',
    writes: new NodeWrites(() => Date.now()),
    watch: () => undefined,
    reachOf: async () => 'own',
    review: () => undefined,
    kubelet: noKubelet,
  })

/** The code of the Status it is refused with; 0 where it is answered. */
const refusal = (answer: Promise<unknown>): Promise<number> =>
  answer.then(
    () => 0,
    (error: unknown) => (error instanceof StatusError ? error.status.code : -1),
  )

void t.test('an impersonating request is refused while offline', async (t) => {
  const headers = { 'Impersonate-User': 'bob' }
  const exchange = exchangeOf('/api/v1/namespaces/default/secrets', { headers })
  t.equal(await refusal(answer({ ...exchange, credential: 'caller' })), 503)
})

void t.test('a watch of one object by its path is not answered as one of its kind', async (t) => {
  t.equal(
    await refusal(
      answer(
        exchangeOf('/api/v1/watch/namespaces/default/pods/a?fieldSelector=status.phase%3DRunning'),
      ),
    ),
    503,
  )
})

void t.test('an ambiguous path is answered by the cloud or not at all', async (t) => {
  t.equal(await refusal(answer(exchangeOf('/apis/../version'))), 503)
  t.equal(await refusal(answer(exchangeOf('/api%2Fv1/pods'))), 503)
})

void t.test('a HEAD is refused offline, of an object or of a list', async (t) => {
  for (const url of ['/api/v1/namespaces/default/pods/a', '/api/v1/pods'])
    t.equal(await refusal(answer(exchangeOf(url, { method: 'HEAD' }))), 503, url)
})

void t.test('a refused list is not read', async (t) => {
  const list = (): never => {
    throw new Error('the list was read')
  }
  const store = {
    version: () => '50',
    committedVersion: () => '50',
    list,
  } as unknown as ObjectStore
  const refused = (query: string): Promise<number> =>
    refusal(answer(exchangeOf(`/api/v1/pods?${query}`), store))
  t.equal(await refused('resourceVersion=51'), 504)
  t.equal(await refused('resourceVersion=49&resourceVersionMatch=Exact'), 410)
  t.equal(await refused('resourceVersion=49&limit=2'), 410, 'pages begin at exactly their version')
  t.equal(await refused('limit=1&continue=abc'), 410)
  t.equal(await refused('resourceVersion=abc'), 400)
  t.equal(await refused('resourceVersion=50'), -1, 'another is read')
})
