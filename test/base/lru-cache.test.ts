import t from 'tap'
import { lruCache } from '../../src/base/lru-cache.ts'

void t.test('the most recently used entries stay, up to the limit', async (t) => {
  const kept = lruCache<string, number>(3)
  for (const [value, key] of ['a', 'b', 'c'].entries()) kept.set(key, value)
  t.equal(kept.get('a'), 0)
  kept.set('d', 3)
  t.strictSame([...kept.keys()], ['d', 'a', 'c'])
  kept.set('c', 4)
  kept.set('e', 5)
  t.strictSame(
    [...kept.entries()],
    [
      ['e', 5],
      ['c', 4],
      ['d', 3],
    ],
  )
})
