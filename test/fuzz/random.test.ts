import t from 'tap'
import { seedOf } from './random.ts'

void t.test('a job repeats the seed that is named, and draws another one each time', async (t) => {
  t.equal(seedOf({ seed: '7', round: '88' }), 7)
  t.not(seedOf({}), seedOf({}))
  t.throws(() => seedOf({ round: '88' }), /--seed/)
})
