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

void t.test('a written file and its folder are readable by the owner alone', async (t) => {
  const folder = join(t.testdir(), 'made')
  const file = join(folder, 'a.json')
  await numbered(file).write(7)
  t.equal(readFileSync(file, 'utf8'), '7')
  t.strictSame([modeOf(folder), modeOf(file)], [0o700, 0o600])
  t.strictSame(readdirSync(folder), ['a.json'])
})

void t.test('a thousand writes become the one under way and one of the last value', async (t) => {
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

void t.test('a failed write rejects, and the next write tries again', async (t) => {
  const folder = t.testdir({ beside: 'a file' })
  const { write } = numbered(join(folder, 'beside', 'a.json'))
  await t.rejects(write(1))
  await t.rejects(Promise.all([write(2), write(3)]))
})

void t.test('disposal waits for pending writes and ignores later ones', async (t) => {
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
