import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { seedOf } from '../fuzz/random.ts'
import { disk } from './disk.ts'
import { cutHubPower } from './hub-power-cuts.ts'
import { kill } from './kills.ts'
import { cutPower } from './power-cuts.ts'

/**
 * `npm run crash -- [TIMES] [--seed N]`: cuts a store's power this many times, and a hub's, kills a
 * hub as often, and prints the faults. A thousand of each take about an hour. The seed is drawn if
 * none is given, and printed.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: 'string' } },
})
const times = Number(positionals[0] ?? '100')
const seed = seedOf(values)
const cutsOfOneRun = 100

const downs: (() => unknown)[] = []
const teardown = { teardown: (act: () => unknown) => void downs.unshift(act) }

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'nodehub-crash-'))
  teardown.teardown(() => rmSync(path, { recursive: true, force: true }))
  return path
}

const say = (text: string): boolean => process.stdout.write(`${text}\n`)

say(`npm run crash -- ${times} --seed ${seed}`)
try {
  const made = disk(folder())
  if ('reason' in made) throw new Error(made.reason)
  const { library } = made
  for (let cut = 0; cut < times; cut += cutsOfOneRun) {
    const cuts = Math.min(cutsOfOneRun, times - cut)
    const path = folder()
    const wrong = await cutPower({ folder: path, library, seed: seed + cut, rounds: 400, cuts })
    rmSync(path, { recursive: true })
    if (wrong.length > 0) throw new Error(wrong.join('\n'))
    say(`${cut + cuts} power cuts of a store`)
  }
  for (let cut = 0; cut < times; cut += cutsOfOneRun) {
    const cuts = Math.min(cutsOfOneRun, times - cut)
    await cutHubPower(teardown, { folder: folder(), library, seed: seed + cut, lives: 12, cuts })
    say(`${cut + cuts} power cuts of a hub`)
  }
  await kill(teardown, {
    folder: folder(),
    library,
    seed,
    deaths: times,
    onDeath: (death, step, of) =>
      (death + 1) % 10 === 0 && say(`${death + 1} kills, the last at step ${step} of ${of}`),
  })
} finally {
  for (const act of downs) await act()
}
