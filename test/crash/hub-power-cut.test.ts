import t from 'tap'
import { rootFolder } from '../kit/hub.ts'
import { disk } from './disk.ts'
import { cutHubPower } from './hub-power-cuts.ts'

const made = disk(t.testdir())

if ('reason' in made) t.pass('skipped', { skip: made.reason })
else {
  const { library } = made
  void t.test(
    'F4: a hub that boots without a link after a power cut serves the last complete state',
    async (t) => {
      await cutHubPower(t, {
        folder: rootFolder(t),
        library,
        seed: 1,
        lives: 1,
        cuts: 4,
        onCut: (step, of) => t.pass(`after step ${step} of ${of}`),
      })
    },
  )
}
