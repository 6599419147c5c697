import t from 'tap'
import { rootFolder } from '../kit/hub.ts'
import { disk } from './disk.ts'
import { kill } from './kills.ts'

const made = disk(t.testdir())

if ('reason' in made) t.pass('skipped', { skip: made.reason })
else {
  const { library } = made
  void t.test('a hub killed at any step answers nothing older than before', async (t) => {
    const deaths = 5
    await kill(t, {
      folder: rootFolder(t),
      library,
      seed: 1,
      deaths,
      onDeath: (round, step, of) => t.pass(`death ${round + 1}: at step ${step} of ${of}`),
    })
  })
}
