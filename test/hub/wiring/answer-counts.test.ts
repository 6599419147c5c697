import t from 'tap'
import { AnswerCounts, mostKinds } from '../../../src/hub/wiring/answer-counts.ts'

const line = (resource: string, source: string, code = 200, path = '/x') => ({
  id: '1',
  method: 'GET',
  path,
  verb: 'list',
  resource,
  component: 'kubelet',
  code,
  source,
  ms: 1,
})

void t.test('answers are counted by source, and the last one is kept', async (t) => {
  const counts = new AnswerCounts()
  counts.add(line('pods', 'cloud'), 1)
  counts.add(line('pods', 'cache'), 2)
  counts.add(line('pods', 'hub', 503), 3)
  t.match(counts.all(), [
    {
      component: 'kubelet',
      verb: 'list',
      what: 'pods',
      cloud: 1,
      cache: 1,
      hub: 1,
      refused: 1,
      last: { at: 3, source: 'hub', code: 503 },
    },
  ])
})

void t.test('what clients expect to be answered counts as no refusal', async (t) => {
  const counts = new AnswerCounts()
  const answered = (verb: string, code: number): number => {
    counts.add({ ...line(`${verb}-${code}`, 'cloud', code), verb }, 0)
    return counts.all()[0]?.refused ?? NaN
  }
  // A kubelet reads its lease before it creates it, and a watch that is too old is listed anew.
  const expected = [
    ['get', 404],
    ['list', 404],
    ['update', 409],
    ['watch', 410],
  ] as const
  for (const [verb, code] of expected) t.equal(answered(verb, code), 0, `${verb} ${code}`)
  const refusals = [
    ['patch', 404],
    ['get', 403],
    ['create', 422],
    ['list', 429],
    ['watch', 503],
  ] as const
  for (const [verb, code] of refusals) t.equal(answered(verb, code), 1, `${verb} ${code}`)
})

void t.test('the least recently used count is forgotten first', async (t) => {
  const counts = new AnswerCounts()
  counts.add(line('first', 'cloud'), 0)
  counts.add(line('second', 'cloud'), 0)
  for (let at = 2; at < mostKinds; at++) counts.add(line(`r${at}`, 'cloud'), at)
  counts.add(line('first', 'cloud'), 1)
  counts.add(line('new', 'cloud'), 2)
  const kept = new Set(counts.all().map(({ what }) => what))
  t.equal(kept.size, mostKinds)
  t.notOk(kept.has('second'))
  t.ok(kept.has('first'))
})

void t.test('a path that a client makes long is cut', async (t) => {
  const counts = new AnswerCounts()
  counts.add(line('', 'hub', 404, `/${'x'.repeat(60_000)}`), 0)
  t.ok((counts.all()[0]?.what.length ?? Infinity) <= 120)
})
