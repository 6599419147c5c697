import { createServer } from 'node:net'
import t from 'tap'
import { listening } from '../../src/server/listening.ts'

void t.test('a server that fails after it has listened is told of, and stays', async (t) => {
  const server = createServer()
  t.teardown(() => server.close())
  const broken: unknown[] = []
  const onBroken = (cause: unknown): unknown => broken.push(cause)
  const port = await listening(server, { host: '127.0.0.1', port: 0, onBroken })
  t.ok(port > 0)
  const causes = [new Error('EMFILE'), new Error('EMFILE')]
  for (const cause of causes) server.emit('error', cause)
  t.strictSame(broken, causes)
})

void t.test('a place that is taken is an error of the start alone', async (t) => {
  const [first, second] = [createServer(), createServer()]
  t.teardown(() => first.close())
  const broken: unknown[] = []
  const place = { host: '127.0.0.1', onBroken: (cause: unknown) => broken.push(cause) }
  const port = await listening(first, { ...place, port: 0 })
  await t.rejects(listening(second, { ...place, port }), { code: 'EADDRINUSE' })
  t.strictSame(broken, [])
})
