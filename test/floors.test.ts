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

void t.test('a folder may import from below and from itself', async (t) => {
  for (const source of [
    "import { a } from '../store/store.ts'",
    "import type { A } from '../../api/kube/gvk.ts'",
    "export { a } from './other.ts'",
    "const a = await import('../../base/clock.ts')",
    "import { a } from 'node:fs'",
  ]) {
    t.strictSame(broken('src/hub/cache/recorder.ts', source), [], source)
  }
  t.strictSame(broken('src/hub/hub.ts', "import { a } from './wiring/cloud.ts'"), [])
  t.strictSame(
    broken('src/hub/wiring/enabled-filters.ts', "import { a } from '../../../filters/index.ts'"),
    [],
  )
  t.strictSame(broken('filters/a.ts', "import type { A } from '../src/hub/filter/filter.ts'"), [])
  t.strictSame(broken('test/a.test.ts', "import { a } from '../src/hub/hub.ts'"), [])
  t.strictSame(broken('src/main.ts', "import { a } from './cli/cli.ts'"), [])
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

void t.test('a circle of imports is found, of types and of dynamic imports too', async (t) => {
  const files = (back: string) => [
    { path: 'src/base/a.ts', source: "import { b } from './b.ts'" },
    { path: 'src/base/b.ts', source: "import type { C } from './c/c.ts'\nimport './d.ts'" },
    { path: 'src/base/c/c.ts', source: back },
    { path: 'src/base/d.ts', source: "import { readFile } from 'node:fs'" },
  ]
  const [b, c] = ['src/base/b.ts', 'src/base/c/c.ts']
  t.strictSame(brokenFloors(files("const { b } = await import('../b.ts')")), [
    `imports in a circle: ${b} → ${c} → ${b}`,
  ])
  t.strictSame(brokenFloors(files("export type { A } from '../a.ts'")), [
    `imports in a circle: src/base/a.ts → ${b} → ${c} → src/base/a.ts`,
  ])
  t.strictSame(brokenFloors(files("export * from '../d.ts'")), [])
})

void t.test('names that say nothing are refused, words that contain them are not', async (t) => {
  for (const path of [
    'src/util/a.ts',
    'src/hub/store/utils.ts',
    'test/helpers/a.ts',
    'src/hub/cache/cache-manager.ts',
    'bench/common.ts',
  ]) {
    t.match(broken(path, ''), [/says nothing of what it knows/], path)
  }
  t.strictSame(broken('src/hub/store/utility-power.ts', ''), [])
})

void t.test('a comment goes no further than code does', async (t) => {
  const wide = 'x'.repeat(100)
  for (const source of [`// ${wide}`, `/** ${wide} */`, ` * ${wide}`, `const a = 1 // ${wide}`])
    t.match(broken('src/api/kube/a.ts', source), [
      /^src\/api\/kube\/a\.ts:1: a comment beyond 100 columns/,
    ])
  for (const source of [
    `const a = '${wide}'`,
    `const a = 'http://${wide}'`,
    `// ${'x'.repeat(97)}`,
  ])
    t.strictSame(broken('src/api/kube/a.ts', source), [])
  for (const [path, source] of [
    ['bin/a.js', `// ${wide}`],
    ['test/a.c', `int a; /* ${wide} */`],
    ['test/a.go', `\t// ${wide}`],
    ['src/status-page/a.css', `/* ${wide} */`],
    ['src/status-page/a.html', `<!-- ${wide} -->`],
  ] as const)
    t.match(broken(path, source), [/:1: a comment beyond 100 columns/], path)
})

void t.test('comments, texts and pages do without the words that are avoided', async (t) => {
  for (const [path, source] of [
    ['src/api/kube/a.ts', '/** What the client was told. */'],
    ['src/api/kube/a.ts', ' * Nobody reads it.'],
    ['src/api/kube/a.ts', 'const a = 1 // the lists it asked for'],
    ['src/api/kube/a.ts', 'const asked = true'],
    ['src/api/kube/a.ts', "log.info('nobody listens')"],
    ['src/api/kube/a.ts', 'log.info(`whoever has ${port}`)'],
    ['filters/a.ts', '// no news'],
    ['docs/a.md', 'It is judged.'],
    ['docs/a.md', '```\nnodehub\n```\n\n- spelled `otherwise`'],
    ['README.md', 'An `end\nof` what is yours'],
  ] as const)
    t.match(broken(path, source), [/^\S+:\d+: “[\w ]+”; say /], source)
  t.match(broken('docs/a.md', '```\ntold\n```\nand told'), [/^docs\/a\.md:4: “told”; say /])
})

void t.test('titles of tests do without the words that are avoided', async (t) => {
  const titled = (call: string, title: string): string[] =>
    broken('test/a.test.ts', `\nvoid t.${call}(${title}, async (t) => {})\n`)
  for (const [call, title] of [
    ['test', "'nobody listens'"],
    ['test', '"a client\u2019s watch is told of it"'],
    ['test', '`who asks for ${path} is refused`'],
    ['promise', '\n  "it isn\'t what was asked"'],
  ] as const)
    t.match(titled(call, title), [/^test\/a\.test\.ts:2: “[\w ]+” in a title; say /], title)
  for (const title of ["'a client gets it'", '`${told} is sent`', "'it is \\'so\\''"])
    t.strictSame(titled('test', title), [], title)
})

void t.test('quotations keep their words, and so do names that are released', async (t) => {
  for (const [path, source] of [
    ['src/api/kube/a.ts', '/** The view `told` has them, and `yours` ends the restart. */'],
    ['src/api/kube/a.ts', "db.prepare('SELECT body FROM told')"],
    ['src/api/kube/a.ts', "send('yours')"],
    ['src/api/kube/a.ts', '// the newsletter of an askedFor, misspelt'],
    ['test/a.test.ts', 'const asked = 1 // nobody is told'],
    ['docs/a.md', '| “nobody is told” | `asked` |'],
    ['docs/a.md', 'The test “nobody\nis told” shows it.'],
    ['docs/a.md', '1. So:\n\n   ```\n   nobody\n   ```\n'],
  ] as const)
    t.strictSame(broken(path, source), [], source)
})
