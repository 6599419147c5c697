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
      names: [...line.replaceAll(/\(.*?\)/g, '').matchAll(/[\w-]+(?:\/|\.ts)/g)].map(([name]) =>
        name.replace('/', ''),
      ),
    }),
  )
  const checked = floors.map((names, number) => ({ number, names: [...names].toSorted() }))
  t.strictSame(
    drawn.toReversed().map(({ number, names }) => ({ number, names: names.toSorted() })),
    checked,
  )
})

void t.test('nothing stands on a floor that is not there', async (t) => {
  for (const name of floors.flat()) t.ok(existsSync(`src/${name}`), name)
})

void t.test('a folder may import from below and from itself', async (t) => {
  for (const source of [
    "import { a } from '../store/store.ts'",
    "import type { A } from '../kube/gvk.ts'",
    "export { a } from './other.ts'",
    "const a = await import('../base/clock.ts')",
    "import { a } from 'node:fs'",
  ]) {
    t.strictSame(broken('src/cache/recorder.ts', source), [], source)
  }
  t.strictSame(broken('src/hub.ts', "import { a } from '../filters/index.ts'"), [])
  t.strictSame(broken('src/hub.ts', "import { a } from './hub/cloud.ts'"), [])
  t.strictSame(broken('src/hub/filters.ts', "import { a } from '../../filters/index.ts'"), [])
  t.strictSame(broken('filters/a.ts', "import type { A } from '../src/filter/filter.ts'"), [])
  t.strictSame(broken('test/a.test.ts', "import { a } from '../src/hub.ts'"), [])
  t.strictSame(broken('src/main.ts', "import { a } from './cli/cli.ts'"), [])
})

void t.test('from above, from a neighbour, from tests it may not', async (t) => {
  const cases: [string, string, RegExp][] = [
    ['src/kube/a.ts', "import type { A } from '../codec/list.ts'", /src\/codec is above src\/kube/],
    ['src/cache/a.ts', "import { a } from '../remote/b.ts'", /src\/remote is a neighbour/],
    ['src/store/a.ts', "const a = await import( '../cache/b.ts')", /is above/],
    ['src/store/a.ts', "export * from '../pipeline/b.ts'", /is above/],
    ['src/store/a.ts', "new Worker(new URL('../hub.ts', import.meta.url))", /is above/],
    ['src/store/a.ts', "import\n  '../cache/b.ts'", /is above/],
    ['src/sandbox/a.ts', "import { a } from '../hub.ts'", /is a neighbour/],
    ['src/hub.ts', "import { a } from './cli/log.ts'", /is above/],
    ['src/hub/cloud.ts', "import { a } from '../cli/log.ts'", /is above/],
    ['src/cache/a.ts', "import { a } from '../../test/kit/b.ts'", /nothing that is shipped/],
    ['filters/a.ts', "import { a } from '../bench/b.ts'", /nothing that is shipped/],
    ['filters/a.ts', "import { a } from '../src/store/b.ts'", /filters do not see src\/store/],
    ['src/filter/a.ts', "import { a } from '../../filters/b.ts'", /does not see the filters/],
    ['src/elsewhere/a.ts', '', /stands on no floor/],
    ['src/store/a.ts', 'await import(name)', /only shows when it runs/],
  ]
  for (const [path, source, complaint] of cases) {
    const sentences = broken(path, source)
    t.equal(sentences.length, 1, source)
    t.match(sentences[0], complaint)
    t.ok(sentences[0]?.startsWith(path))
  }
})

void t.test('names that say nothing are refused, words that contain them are not', async (t) => {
  for (const path of [
    'src/util/a.ts',
    'src/store/utils.ts',
    'test/helpers/a.ts',
    'src/cache/cache-manager.ts',
    'bench/common.ts',
  ]) {
    t.match(broken(path, ''), [/says nothing of what it knows/], path)
  }
  t.strictSame(broken('src/store/utility-power.ts', ''), [])
})

void t.test('a comment goes no further than code does', async (t) => {
  const wide = 'x'.repeat(100)
  for (const source of [`// ${wide}`, `/** ${wide} */`, ` * ${wide}`, `const a = 1 // ${wide}`])
    t.match(broken('src/kube/a.ts', source), [/^src\/kube\/a\.ts:1: a comment beyond 100 columns/])
  for (const source of [
    `const a = '${wide}'`,
    `const a = 'http://${wide}'`,
    `// ${'x'.repeat(97)}`,
  ])
    t.strictSame(broken('src/kube/a.ts', source), [])
})
