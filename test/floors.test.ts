import t from 'tap'
import { existsSync, readFileSync } from 'node:fs'
import { brokenFloors, floors, repository } from './floors.ts'

const broken = (path: string, source: string) => brokenFloors([{ path, source }])

void t.test('the repository keeps to its floors', async (t) => {
  const files = repository()
  t.ok(files.length > 50, 'the files are found at all')
  t.strictSame(brokenFloors(files), [])
})

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

void t.test('imports from above, a neighbour or tests are refused', async (t) => {
  const cases: [string, string, RegExp][] = [
    [
      'src/api/kube/a.ts',
      "import type { A } from '../codec/list.ts'",
      /src\/api\/codec is above src\/api\/kube/,
    ],
    [
      'src/hub/cache/a.ts',
      "import { a } from '../upstream/b.ts'",
      /src\/hub\/upstream is a neighbour/,
    ],
    ['src/hub/store/a.ts', "const a = await import( '../cache/b.ts')", /is above/],
    ['src/hub/store/a.ts', "export * from '../pipeline/b.ts'", /is above/],
    ['src/hub/store/a.ts', "new Worker(new URL('../hub.ts', import.meta.url))", /is above/],
    ['src/hub/store/a.ts', "import\n  '../cache/b.ts'", /is above/],
    ['src/sandbox/a.ts', "import { a } from '../hub/wiring/b.ts'", /is a neighbour/],
    ['src/hub/hub.ts', "import { a } from '../cli/log.ts'", /is above/],
    ['src/hub/wiring/cloud.ts', "import { a } from '../hub.ts'", /is above/],
    ['src/hub/cache/a.ts', "import { a } from '../../../test/kit/b.ts'", /nothing that is shipped/],
    ['filters/a.ts', "import { a } from '../bench/b.ts'", /nothing that is shipped/],
    [
      'filters/a.ts',
      "import { a } from '../src/hub/store/b.ts'",
      /filters do not see src\/hub\/store/,
    ],
    [
      'src/hub/filter/a.ts',
      "import { a } from '../../../filters/b.ts'",
      /does not see the filters/,
    ],
    ['src/elsewhere/a.ts', '', /stands on no floor/],
    ['src/hub/elsewhere/a.ts', '', /stands on no floor/],
    ['src/hub/store/a.ts', 'await import(name)', /only shows when it runs/],
  ]
  for (const [path, source, complaint] of cases) {
    const sentences = broken(path, source)
    t.equal(sentences.length, 1, source)
    t.match(sentences[0], complaint)
    t.ok(sentences[0]?.startsWith(path))
  }
})
