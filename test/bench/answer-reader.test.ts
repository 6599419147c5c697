import t from 'tap'
import { AnswerReader } from '../../bench/load/answer-reader.ts'
import { everySplit } from '../kit/fixture.ts'

/** What a reader tells of `parts`: the statuses, the bodies, and whether each was ended. */
function told(parts: readonly Buffer[]): string[] {
  const said: string[] = []
  const reader = new AnswerReader({
    head: (status) => said.push(`${status} `),
    body: (bytes) => said.push(said.pop() + bytes.toString()),
    end: () => said.push(`${said.pop()}.`),
  })
  for (const part of parts) reader.push(part)
  return said
}

const bytes = (...lines: string[]): Buffer => Buffer.from(lines.join('\r\n'))

void t.test(
  'answers one after the other are read whole, however their bytes are cut',
  async (t) => {
    const two = bytes(
      'HTTP/1.1 200 OK',
      'Content-Length: 5',
      '',
      'helloHTTP/1.1 404 Not Found',
      'Transfer-Encoding: chunked',
      '',
      '3;extension=1',
      'abc',
      'A',
      '0123456789',
      '0',
      'Trailer: 1',
      '',
      '',
    )
    for (const parts of everySplit(two)) {
      const said = told(parts)
      if (said.join('|') !== '200 hello.|404 abc0123456789.') {
        t.fail(`cut at ${parts[0]?.length}: ${said.join('|')}`)
        return
      }
    }
    t.pass('at every place')
  },
)

void t.test('an answer that was cut is not ended', async (t) => {
  t.strictSame(told([bytes('HTTP/1.1 200 OK', 'Content-Length: 5', '', 'hell')]), ['200 hell'])
  const chunked = bytes('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked', '', '3', 'abc', '')
  t.strictSame(told([chunked]), ['200 abc'])
  t.strictSame(told([chunked, bytes('0', '')]), ['200 abc'], 'the last chunk has a line to come')
})

void t.test('an empty body is ended with its head, an interim answer is passed over', async (t) => {
  const interim = bytes('HTTP/1.1 100 Continue', '', '')
  const empty = bytes('HTTP/1.1 200 OK', 'content-length: 0', '', '')
  t.strictSame(told([interim, empty]), ['200 .'])
})

void t.test('a response without framing is refused', async (t) => {
  t.throws(() => told([bytes('HTTP/1.1 200 OK', 'Connection: close', '', 'x')]), /only the end/)
  t.throws(() => told([bytes('HTTP/1.0 200 OK', 'Content-Length: 1', '', 'x')]), /not an answer/)
  t.throws(
    () => told([bytes('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked', '', 'zz', '')]),
    /chunk/,
  )
})
