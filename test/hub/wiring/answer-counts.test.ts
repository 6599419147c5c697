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
