import t from 'tap'
import type { Reply, ReplySource } from '../../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import type { OnUnexpected } from '../../../src/hub/pipeline/failures.ts'
import { Unreachable } from '../../../src/hub/upstream/forward.ts'
import { nodeRequests, type NodeRequest } from '../../../src/hub/wiring/node-request.ts'

const question: NodeRequest = {
  method: 'GET',
  url: '/api/v1/namespaces/default/secrets/s',
  accept: 'application/json',
  component: 'kubelet',
}

const answered = (from: ReplySource, status: number): Reply => ({
  kind: 'body',
  from,
  status,
  headers: new HeaderList(),
  body: Buffer.from('{}'),
})

const code = (
  answer: () => Promise<Reply>,
  onUnexpected: OnUnexpected = () => undefined,
): Promise<number> => nodeRequests(answer, new AbortController().signal, onUnexpected)(question)

void t.test('the code of the cloud’s answer is told, and of no other', async (t) => {
  t.equal(await code(async () => answered('cloud', 200)), 200)
  t.equal(await code(async () => answered('cloud', 403)), 403)
  t.equal(await code(async () => answered('cache', 200)), 0, 'the cache confirms nothing')
  t.equal(await code(() => Promise.reject(new Error('nobody is there'))), 0)
})

void t.test('a mistake in a program is told, and a cloud that is away is not', async (t) => {
  const told: unknown[] = []
  const failing = (error: Error): Promise<number> =>
    code(
      () => Promise.reject(error),
      (cause, { method, url }) => told.push([cause, method, url]),
    )
  const mistake = new TypeError('x is not a function')
  t.equal(await failing(mistake), 0)
  t.equal(await failing(new Unreachable(false)), 0)
  t.strictSame(told, [[mistake, question.method, question.url]])
})
