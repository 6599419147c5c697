import t from 'tap'
import type { Reply, Source } from '../../src/exchange/exchange.ts'
import { HeaderList } from '../../src/exchange/headers.ts'
import { nodeRequests, type NodeRequest } from '../../src/hub/node-request.ts'

const question: NodeRequest = {
  method: 'GET',
  url: '/api/v1/namespaces/default/secrets/s',
  accept: 'application/json',
  component: 'kubelet',
}

const answered = (from: Source, status: number): Reply => ({
  kind: 'body',
  from,
  status,
  headers: new HeaderList(),
  body: Buffer.from('{}'),
})

const code = (answer: () => Promise<Reply>): Promise<number> =>
  nodeRequests(answer, new AbortController().signal)(question)

void t.test('the code of the cloud’s answer is told, and of no other', async (t) => {
  t.equal(await code(async () => answered('cloud', 200)), 200)
  t.equal(await code(async () => answered('cloud', 403)), 403)
  t.equal(await code(async () => answered('cache', 200)), 0, 'the cache confirms nothing')
  t.equal(await code(() => Promise.reject(new Error('nobody is there'))), 0)
})
