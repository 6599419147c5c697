import { EventEmitter, once } from 'node:events'
import { mock } from 'node:test'
import t from 'tap'
import { Connections } from '../../../src/http/client/connections.ts'
import { bodyOf, Chunks } from '../../../src/http/exchange/chunks.ts'
import type { Exchange, Reply, ReplySource } from '../../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import type { OnUnexpected } from '../../../src/hub/pipeline/failures.ts'
import { attempt } from '../../../src/hub/upstream/attempt.ts'
import { Unreachable } from '../../../src/hub/upstream/forward.ts'
import { Upstream } from '../../../src/hub/upstream/upstream.ts'
import {
  nodePatienceMs,
  nodeRequests,
  type NodeRequest,
} from '../../../src/hub/wiring/node-request.ts'
import { rawUpstream } from '../../kit/wire/upstream.ts'
import type { Teardown, Wire } from '../../kit/wire/wire.ts'
import { patientRules, Probes } from '../upstream/probes.ts'

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

void t.test('only the status of the cloud’s answer is reported', async (t) => {
  t.equal(await code(async () => answered('cloud', 200)), 200)
  t.equal(await code(async () => answered('cloud', 403)), 403)
  t.equal(await code(async () => answered('cache', 200)), 0, 'the cache confirms nothing')
  t.equal(await code(() => Promise.reject(new Error('no server is there'))), 0)
})

void t.test('a programming error is reported, and an unreachable cloud is not', async (t) => {
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

interface Asked {
  readonly code: Promise<number>
  readonly server: Wire
  /** Sends part of the answer; resolves when it has arrived, or was given up. */
  readonly send: (part: string) => Promise<void>
}

/** A request of the node on its way to a server, whose answer is read to its end. */
async function ask(t: Teardown): Promise<Asked> {
  const listening = await rawUpstream(t)
  const connections = new Connections({ files: [] })
  const upstream = new Upstream(listening.origin, new Probes().probe, patientRules, {
    onHealth: () => undefined,
  })
  t.teardown(async () => {
    upstream.close()
    await connections[Symbol.asyncDispose]()
  })
  const seen = new EventEmitter()
  const dispatch = async (asked: Exchange): Promise<Reply> => {
    const received = (bytes: number): void => {
      asked.follower?.received(bytes)
      seen.emit('part')
    }
    const exchange = { ...asked, follower: { sent: () => undefined, received } }
    const isInVain = (): Promise<boolean> => Promise.resolve(false)
    const traffic = { receivedBytes: 0 }
    const outgoing = { exchange, headers: asked.headers, repeatable: false, isInVain, traffic }
    const reply = await attempt(outgoing, upstream, connections)
    for await (const _ of new Chunks(bodyOf(reply)));
    return answered('cloud', reply.status)
  }
  const code = nodeRequests(dispatch, new AbortController().signal, () => undefined)(question)
  const server = await listening.asked()
  return {
    code,
    server,
    send: async (part) => {
      const arrived = once(seen, 'part')
      server.write(part)
      await Promise.race([arrived, code])
    },
  }
}

/** Waking time is counted in parts. */
function passes(ms: number): void {
  for (let part = 0; part < 4; part++) mock.timers.tick(ms / 4)
}

void t.test('an answer has as long as it takes over a slow link', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const { code, send } = await ask(t)
  passes(nodePatienceMs - 4)
  await send('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n')
  for (const letter of 'slow') {
    passes(nodePatienceMs - 4)
    await send(letter)
  }
  passes(nodePatienceMs - 4)
  await send('.')
  t.equal(await code, 200)
})

void t.test('an answer of a silent server is given up, also in the middle of it', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  for (const part of ['', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsl']) {
    const { code, server, send } = await ask(t)
    if (part !== '') await send(part)
    passes(nodePatienceMs)
    t.equal(await code, 0)
    await server.ended
  }
})
