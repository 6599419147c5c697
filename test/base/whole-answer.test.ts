import { createServer, get, type RequestListener } from 'node:http'
import t, { type Test } from 'tap'
import { wholeAnswer } from '../../src/base/whole-answer.ts'
import { portOf } from '../kit/wire/listening.ts'

const patienceMs = 30_000

async function answering(t: Test, listener: RequestListener): Promise<URL> {
  return new URL(`http://127.0.0.1:${await portOf(t, createServer(listener))}`)
}

void t.test('an answer is read whole with its code, however it is chunked', async (t) => {
  const at = await answering(t, (_, answer) => {
    const [head, tail] = [Buffer.from('süß').subarray(0, 2), Buffer.from('süß').subarray(2)]
    answer.writeHead(418)
    answer.write(head, () => answer.end(tail))
  })
  t.strictSame(await wholeAnswer(get(at, { agent: false }), patienceMs), {
    status: 418,
    text: 'süß',
  })
})

void t.test('an answer that breaks off rejects', async (t) => {
  const at = await answering(t, (_, answer) => {
    answer.writeHead(200, { 'content-length': 10 })
    answer.write('five,', () => answer.destroy())
  })
  await t.rejects(wholeAnswer(get(at, { agent: false }), patienceMs), { code: 'ECONNRESET' })
})

void t.test('an answer beyond its limit is aborted', async (t) => {
  const at = await answering(t, (_, answer) => {
    answer.write('12345678')
  })
  await t.rejects(wholeAnswer(get(at, { agent: false }), patienceMs, 7), {
    message: 'the answer has no end',
  })
})

void t.test('a silent server times out, before and within its answer', async (t) => {
  const at = await answering(t, ({ url }, answer) => {
    if (url === '/begun') answer.write('a')
  })
  for (const path of ['/', '/begun']) {
    await t.rejects(wholeAnswer(get(new URL(path, at), { agent: false }), 50), {
      message: 'it does not answer',
    })
  }
})
