import t from 'tap'
import { existsSync, readFileSync } from 'node:fs'
import { floors } from './floors.ts'

void t.test('ARCHITECTURE.md draws the floors that are checked, from the top down', async (t) => {
  const drawn = [...readFileSync('ARCHITECTURE.md', 'utf8').matchAll(/^(\d+) {1,2}(.*)$/gm)].map(
    ([, number, line = '']) => ({
      number: Number(number),
      names: [...line.replaceAll(/\(.*?\)/g, '').matchAll(/[\w/-]+(?:\/|\.ts)/g)].map(([name]) =>
        name.replace(/\/$/, ''),
      ),
    }),
  )
  const checked = floors.map((names, number) => ({ number, names: [...names].toSorted() }))
  t.strictSame(
    drawn.toReversed().map(({ number, names }) => ({ number, names: names.toSorted() })),
    checked,
  )
})

void t.test('every floor exists in src/', async (t) => {
  for (const name of floors.flat()) t.ok(existsSync(`src/${name}`), name)
})
