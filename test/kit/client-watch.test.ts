import t, { type Test } from 'tap'
import { once } from 'node:events'
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ClientWatch } from './client-watch.ts'

const bookmark = `${JSON.stringify({ type: 'BOOKMARK', object: {} })}\n`

/** A watch whose server begins it like this, and leaves it open. */
async function watching(t: Test, begin: (answer: ServerResponse) => void): Promise<ClientWatch> {
  const server = createServer((_, answer) => {
    answer.writeHead(200).flushHeaders()
    begin(answer)
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close().closeAllConnections())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const [answer] = (await once(get({ port }), 'response')) as [IncomingMessage]
  return new ClientWatch(answer, { seconds: 0.05 })
}

void t.test('a wait for an event that does not come names the event', async (t) => {
  const silent = await watching(t, () => undefined)
  const message = 'waited 0.05 s for the next event of a watch'
  await t.rejects(silent.next(), { message })
  const short = await watching(t, (answer) => answer.write(bookmark))
  await t.rejects(short.take(2), { message: 'waited 0.05 s for event 2 of 2' })
  const endless = await watching(t, (answer) => answer.write(bookmark))
  await t.rejects(endless.rest(), { message })
  await t.rejects(endless.end(), { message: 'waited 0.05 s for the end of a watch' })
})

void t.test('bookmarks do not prolong a wait for a change', async (t) => {
  const marked = await watching(t, (answer) => {
    const marking = setInterval(() => answer.write(bookmark), 1)
    answer.once('close', () => clearInterval(marking))
  })
  await t.rejects(marked.nextChange(), { message: /^waited 0\.05 s for a change in a watch; last/ })
  const added = await watching(t, (answer) =>
    answer.write(`${bookmark}${JSON.stringify({ type: 'ADDED', object: {} })}\n`),
  )
  t.match(await added.nextChange(), { type: 'ADDED' })
})
