import pino from 'pino'
import t from 'tap'
import { AnswerLog } from '../../../src/hub/wiring/answer-log.ts'

const long = 3_600_000

const line = (code: number, path: string, { ms = 1, component = 'kubelet' } = {}) => ({
  id: '1',
  method: 'GET',
  path,
  verb: 'get',
  resource: '',
  component,
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
  answers.add(line(200, '/a', { ms: 1.2345678901234 }))
  answers.add(line(404, '/b'))
  answers[Symbol.dispose]()
  t.strictSame(brief(), [
    ['answered', 200, '/a', undefined],
    ['answered', 404, '/b', undefined],
  ])
  t.equal(said[0]?.['ms'], 1.235)
})

void t.test('at debug failures and refusals have their own lines, too', async (t) => {
  const { answers, said } = logged('debug')
  answers.add(line(503, '/a'))
  answers.add(refused(401, 'scanner'))
  answers.add(refused(401, 'scanner'))
  answers[Symbol.dispose]()
  t.strictSame(
    said.map(({ level, msg, code, times }) => [level, msg, code, times]),
    [
      [20, 'answered', 503, undefined],
      [30, 'a request failed', 503, undefined],
      [20, 'answered', 401, undefined],
      [40, 'a request was refused', 401, undefined],
      [20, 'answered', 401, undefined],
      [40, 'a request was refused', 401, undefined],
    ],
  )
})

const refused = (code: number, component: string) => ({
  ...line(code, '/a', { component }),
  source: 'hub',
  why: 'Unauthorized',
})

void t.test('refusals of the hub itself are warnings, and their like are counted', async (t) => {
  const { answers, said } = logged('info')
  for (let i = 0; i < 5; i++) answers.add(refused(401, 'scanner'))
  answers.add(refused(401, 'kubelet'))
  answers.add({ ...refused(403, 'kubelet'), source: 'cloud' })
  answers.add({ ...refused(404, 'kubelet') })
  answers[Symbol.dispose]()
  t.match(said, [
    { level: 40, msg: 'a request was refused', component: 'scanner', why: 'Unauthorized' },
    { level: 40, msg: 'a request was refused', component: 'kubelet' },
    { level: 40, msg: 'a request was refused', component: 'scanner', times: 4 },
  ])
  t.equal(said.length, 3)
})

void t.test('clients that change their names make no more lines', async (t) => {
  const { answers, said } = logged('info')
  for (let i = 0; i < 1_000; i++) answers.add(refused(401, `scanner${i}`))
  t.equal(said.length, 17)
  answers[Symbol.dispose]()
  t.equal(said.length, 18)
  t.match(said.at(-1), { component: 'scanner999', times: 983 }, 'the rest, and how many')
})
