import t from 'tap'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { StateFile } from '../../src/base/state-file.ts'
import { Condition } from '../kit/condition.ts'

/** A file of a number, and how often that was asked for. */
function numbered(file: string) {
  const taken: number[] = []
  const begun = new Condition()
  let now = 0
  const kept = new StateFile(file, () => {
    taken.push(now)
    begun.changed()
    return String(now)
  })
  return {
    kept,
    taken,
    /** Resolves as soon as a write has begun. */
    begun: () => begun.until(() => taken.length > 0),
    write: (number: number): Promise<void> => {
      now = number
      return kept.write()
    },
  }
}

const modeOf = (path: string): number => statSync(path).mode & 0o777

void t.test('what was asked for is in the file, closed to others, with its folder', async (t) => {
  const folder = join(t.testdir(), 'made')
  const file = join(folder, 'a.json')
  await numbered(file).write(7)
  t.equal(readFileSync(file, 'utf8'), '7')
  t.strictSame([modeOf(folder), modeOf(file)], [0o700, 0o600])
  t.strictSame(readdirSync(folder), ['a.json'])
})

void t.test('what was requested before is written, if it is not on the disk yet', async (t) => {
  const file = join(t.testdir(), 'a.json')
  const { write, kept } = numbered(file)
  t.equal(kept.written(), undefined)
  void write(1)
  await kept.written()
  t.equal(readFileSync(file, 'utf8'), '1')
  await write(2)
  t.equal(kept.written(), undefined)
})

void t.test('however many ask, one write is under way and one waits; the last wins', async (t) => {
  const file = join(t.testdir(), 'a.json')
  const { write, taken, begun } = numbered(file)
  const first = write(1)
  await begun()
  const rest = Array.from({ length: 1_000 }, (_, i) => write(i + 2))
  await first
  t.equal(readFileSync(file, 'utf8'), '1')
  await rest[0]
  t.equal(readFileSync(file, 'utf8'), '1001', 'no earlier state is said to be written')
  await Promise.all(rest)
  t.strictSame(taken, [1, 1001])
})

void t.test('who asks is told that it failed, and the next is tried anew', async (t) => {
  const folder = t.testdir({ beside: 'a file' })
  const { write } = numbered(join(folder, 'beside', 'a.json'))
  await t.rejects(write(1))
  await t.rejects(Promise.all([write(2), write(3)]))
})

void t.test('what was asked for before the end is written, what is asked later not', async (t) => {
  const file = join(t.testdir(), 'a.json')
  const { kept, write, begun } = numbered(file)
  void write(1)
  await begun()
  void write(2)
  await kept[Symbol.asyncDispose]()
  t.equal(readFileSync(file, 'utf8'), '2')
  await write(3)
  t.equal(readFileSync(file, 'utf8'), '2')
})
