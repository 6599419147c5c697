import t from 'tap'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { listening } from '../../src/server/listening.ts'

void t.test('a server that fails after it has listened is told of, and stays', async (t) => {
  const server = createServer()
  t.teardown(() => server.close())
  const broken: unknown[] = []
  const onBroken = (cause: unknown): unknown => broken.push(cause)
  const { port } = await listening(server, { host: '127.0.0.1', port: 0 }, onBroken)
  t.ok(port > 0)
  const causes = [new Error('EMFILE'), new Error('EMFILE')]
  for (const cause of causes) server.emit('error', cause)
  t.strictSame(broken, causes)
})

void t.test('a place that is taken is an error of the start alone', async (t) => {
  const [first, second] = [createServer(), createServer()]
  t.teardown(() => first.close())
  const broken: unknown[] = []
  const onBroken = (cause: unknown): unknown => broken.push(cause)
  const { port } = await listening(first, { host: '127.0.0.1', port: 0 }, onBroken)
  await t.rejects(listening(second, { host: '127.0.0.1', port }, onBroken), {
    code: 'EADDRINUSE',
    message: `127.0.0.1:${port} is taken: another program listens there`,
  })
  t.strictSame(broken, [])
})

void t.test('a passed socket is served, and its place kept, whoever bound it', async (t) => {
  const holder = createServer()
  t.teardown(() => holder.close())
  const ignore = (): void => undefined
  const held = await listening(holder, { host: '127.0.0.1', port: 0 }, ignore)
  const child = spawn(process.execPath, [join(import.meta.dirname, 'passed-on.ts')], {
    stdio: ['ignore', 'pipe', 'inherit', held.fd],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const [said] = (await once(child.stdout as Readable, 'data')) as [Buffer]
  t.equal(Number(said.toString()), held.port)
  holder.close()
  await once(holder, 'close')
  t.equal(await text(connect(held.port, '127.0.0.1')), 'hello')
  const other = createServer()
  await t.rejects(listening(other, { host: '127.0.0.1', port: held.port }, ignore), {
    code: 'EADDRINUSE',
  })
})

void t.test('what is no socket is no place', async (t) => {
  const server = createServer()
  const folder = openSync(import.meta.dirname, 'r')
  t.teardown(() => closeSync(folder))
  await t.rejects(
    listening(server, { fd: folder }, () => undefined),
    { message: `the socket passed as file descriptor ${folder} cannot be used` },
  )
})
