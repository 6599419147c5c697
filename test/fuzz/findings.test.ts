import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { finding } from './corpus.ts'
import { Random } from './random.ts'
import { listRound } from './targets/lists.ts'

/** Ways to split an input. */
const draws = 200

for (const name of readdirSync(join(import.meta.dirname, 'corpus'))) {
  void t.test(`what was found once is read rightly, however it is split: ${name}`, async (t) => {
    const encoding = name.endsWith('.json') ? 'json' : 'protobuf'
    const body = finding(name)
    const outcomes = Array.from({ length: draws }, (_, seed) =>
      listRound(encoding, body, new Random(seed)),
    )
    const isTaken = encoding === 'json' && !name.includes('bad-object')
    t.strictSame([...new Set(outcomes)], [isTaken ? 'taken' : 'refused'])
  })
}
