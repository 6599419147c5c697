import { once } from 'node:events'
import { Readable } from 'node:stream'
import t from 'tap'
import { attemptBody } from '../../../src/hub/upstream/attempt-body.ts'

void t.test(
  'a body of nothing that has come to its end already ends, instead of waiting',
  async (t) => {
    const body = Readable.from([])
    body.resume()
    await once(body, 'end')
    t.strictSame(await attemptBody(body).toArray(), [])
  },
)

void t.test('a body that has been read is not lent again as if it were empty', async (t) => {
  const body = Readable.from(['a'])
  await body.toArray()
  await t.rejects(attemptBody(body).toArray(), { message: 'an earlier attempt has read the body' })
})

void t.test('an error of the body needs no listener', async (t) => {
  const body = Readable.from(['a'])
  await body.toArray()
  const copy = attemptBody(body)
  copy.read(0)
  await new Promise((resolve) => copy.on('close', resolve))
  t.match(copy.errored, { message: 'an earlier attempt has read the body' })
})
