import pino from 'pino'
import t from 'tap'
import { AnswerLog } from '../../../src/hub/wiring/answer-log.ts'

const long = 3_600_000

const line = (code: number, path: string, ms = 1) => ({
  id: '1',
  method: 'GET',
  path,
  verb: 'get',
  resource: '',
  component: 'kubelet',
  code,
  source: code < 500 ? 'cloud' : 'hub',
  ms,
})

function logged(level: 'info' | 'debug') {
  const said: Record<string, unknown>[] = []
  const write = (text: string): void => void said.push(JSON.parse(text) as Record<string, unknown>)
  const answers = new AnswerLog(pino({ level, base: null, timestamp: false }, { write }), long)
  const brief = () => said.map(({ msg, code, path, times }) => [msg, code, path, times])
  return { answers, said, brief }
}

void t.test('a request that fails is seen at info, and its like are counted', async (t) => {
  const { answers, brief } = logged('info')
  for (const path of ['/a', '/b', '/c']) answers.add(line(503, path))
  answers.add(line(500, '/d'))
  for (const code of [200, 401, 404]) answers.add(line(code, '/e'))
  const atOnce = [
    ['a request failed', 503, '/a', undefined],
    ['a request failed', 500, '/d', undefined],
  ]
  t.strictSame(brief(), atOnce)
  answers[Symbol.dispose]()
  t.strictSame(brief(), [...atOnce, ['a request failed', 503, '/c', 2]], 'the latest, and how many')
})

void t.test('at debug each answer has its line, to the microsecond', async (t) => {
  const { answers, said, brief } = logged('debug')
  answers.add(line(200, '/a', 1.2345678901234))
  answers.add(line(503, '/a'))
  answers.add(line(503, '/a'))
  answers[Symbol.dispose]()
  t.strictSame(
    brief(),
    [200, 503, 503].map((code) => ['answered', code, '/a', undefined]),
  )
  t.equal(said[0]?.['ms'], 1.235)
})
