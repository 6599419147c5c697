import t from 'tap'
import { readFileSync } from 'node:fs'
import { isThere, testsIn } from '../named-tests.ts'
import { rowsUnder } from '../tables.ts'

const rows = rowsUnder(
  readFileSync('docs/design/parity.md', 'utf8'),
  '# What yurthub does, and the hub',
)

/** What is still to be built, as it is called in the remarks. */
const subjects = [
  'durable cacher',
  'filter chain',
  'host-network pools',
  'bootstrap and rotation of certificates',
  'offline authorization',
  'outbox and replay',
  'sharing between nodes',
  'inspect',
  'status page',
  'working modes',
  'dummy interface',
  'OTA',
]

void t.test('each of yurthub’s features has a row, once and in order', async (t) => {
  t.strictSame(
    rows.map(([row]) => row),
    Array.from({ length: 124 }, (_, i) => `Y${i + 1}`),
  )
})

void t.test('every test that a row names exists', async (t) => {
  for (const [row = '', , , , shown = ''] of rows) {
    for (const named of testsIn(shown))
      t.ok(isThere(named), `${row}: ${named.file}: ${named.title}`)
  }
})

void t.test('a row has the cells that its state requires', async (t) => {
  for (const [row = '', feature = '', state = '', remark = '', shown = ''] of rows) {
    const tests = testsIn(shown).length
    t.ok(feature, row)
    if (state === 'holds') t.ok(tests > 0, `${row} is shown by a test`)
    else if (state === 'partly' || state === 'otherwise') {
      t.ok(tests > 0 && remark, `${row} says what differs, and is shown by a test`)
    } else if (state === 'to come') {
      t.ok(
        subjects.some((subject) => remark.includes(subject)),
        `${row} says with what it comes`,
      )
    } else if (state === 'not') t.ok(remark, `${row} says why not`)
    else t.fail(`${row}: ${state} is no state`)
  }
})
