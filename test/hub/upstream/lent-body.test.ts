import { once } from 'node:events'
import { Readable } from 'node:stream'
import t from 'tap'
import { lentBody } from '../../../src/hub/upstream/lent-body.ts'

void t.test(
  'a body of nothing that has come to its end already ends, instead of waiting',
  async (t) => {
    const body = Readable.from([])
    body.resume()
    await once(body, 'end')
    t.strictSame(await lentBody(body).toArray(), [])
  },
)

void t.test('a body that has been read is not lent again as if it were empty', async (t) => {
  const body = Readable.from(['a'])
  await body.toArray()
  await t.rejects(lentBody(body).toArray(), { message: 'the body has been read before' })
})

void t.test('nobody has to listen to it', async (t) => {
  const body = Readable.from(['a'])
  await body.toArray()
  const copy = lentBody(body)
  copy.read(0)
  await new Promise((resolve) => copy.on('close', resolve))
  t.match(copy.errored, { message: 'the body has been read before' })
})
