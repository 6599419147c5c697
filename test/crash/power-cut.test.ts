import t from 'tap'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { disk } from './disk.ts'
import { cutPower } from './power-cuts.ts'

const made = disk(t.testdir())

if ('reason' in made) t.pass('skipped', { skip: made.reason })
else {
  const { library } = made
  void t.test(
    'F4: after a power cut the store is a committed state, old or new, never mixed',
    async (t) => {
      const wrong = await cutPower({ folder: t.testdir(), library, seed: 1, rounds: 80, cuts: 8 })
      t.strictSame(wrong, [])
    },
  )

  void t.test(
    'F4: a power cut takes only changes of the last seconds, though nothing followed them',
    async (t) => {
      const wrong = await cutPower({
        folder: t.testdir(),
        library,
        seed: 5,
        rounds: 60,
        cuts: 8,
        syncWithinMs: 20,
      })
      t.strictSame(wrong, [])
    },
  )

  void t.test(
    'F4: a first run killed early leaves files that a second one survives on',
    async (t) => {
      const all = t.testdir()
      // Before it synced the name of its folder, and that of its key.
      for (const killedAt of [2, 6]) {
        const folder = join(all, String(killedAt))
        mkdirSync(folder, { recursive: true })
        const wrong = await cutPower({ folder, library, seed: 4, rounds: 12, cuts: 6, killedAt })
        t.strictSame(wrong, [], `killed at step ${killedAt}`)
      }
    },
  )

  void t.test('F3: after a failed fsync, later commits survive a power cut', async (t) => {
    const all = t.testdir()
    // In the second the store is closed after a failure, and opened again.
    for (const seed of [3, 40]) {
      const folder = join(all, String(seed))
      mkdirSync(folder)
      const how = { rounds: 80, cuts: 8, failEverySync: 11 }
      t.strictSame(await cutPower({ folder, library, seed, ...how }), [], `seed ${seed}`)
    }
  })
}
