import t from 'tap'
import { disk } from './disk.ts'
import { cutPower } from './power-cuts.ts'

const made = disk(t.testdir())

if ('reason' in made) t.pass('skipped', { skip: made.reason })
else {
  const { library } = made
  for (const seed of [1, 2]) {
    void t.test(
      `F4: what a power cut leaves of the disk is what was stored, old or new and never mixed: seed ${seed}`,
      async (t) => {
        const wrong = await cutPower({
          folder: t.testdir(),
          library,
          seed,
          rounds: 300,
          cuts: 30,
        })
        t.strictSame(wrong, [])
      },
    )
  }

  void t.test(
    'F3: a sync that failed takes nothing with it that is stored afterwards, though a power cut follows',
    async (t) => {
      const wrong = await cutPower({
        folder: t.testdir(),
        library,
        seed: 3,
        rounds: 300,
        cuts: 25,
        failEverySync: 11,
      })
      t.strictSame(wrong, [])
    },
  )
}
