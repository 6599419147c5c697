import { existsSync, globSync, readFileSync } from 'node:fs'
import t from 'tap'
import { stale } from './equivalents.ts'
import { branchesOf, mutantsOf } from './places.ts'
import { placed, reviewed } from './reviewed.ts'

/** Each fault of a source as `kind: before -> after`. */
const faults = (source: string): string[] =>
  mutantsOf('src/a.ts', source).map(({ kind, was, becomes }) => `${kind}: ${was} -> ${becomes}`)

void t.test('conditions, boundaries, operators and constants are made wrong', async (t) => {
  t.strictSame(faults('const a = x < 3 ? b && c : d ?? e'), [
    'negated: x < 3 -> !(x < 3)',
    'boundary: x < 3 -> (x) <= (3)',
    'number: 3 -> 4',
    'logical: b && c -> (b) || (c)',
    'no-fallback: d ?? e -> (d)',
  ])
  t.strictSame(faults('const a = [x * 1024n, -y, !true]; a.n += 1; i++'), [
    'no-elements: [x * 1024n, -y, !true] -> []',
    'arithmetic: x * 1024n -> (x) / (1024n)',
    'number: 1024n -> 1025n',
    'boolean: true -> false',
    'no-assignment: a.n += 1; -> ;',
    'arithmetic: a.n += 1 -> a.n -= 1',
    'number: 1 -> 2',
    'arithmetic: i++ -> i--',
  ])
})

void t.test('statements, guards and bodies are taken away', async (t) => {
  t.strictSame(faults('async function f() { if (x) return; await g(y); this.z = x }'), [
    'no-body: { if (x) return; await g(y); this.z = x } -> {}',
    'negated: x -> !(x)',
    'no-guard: x -> false && (x)',
    'no-call: await g(y); -> ;',
    'no-assignment: this.z = x -> ;',
  ])
  t.strictSame(faults('if (a === b) f(); else g()'), [
    'negated: a === b -> !(a === b)',
    'no-call: f(); -> ;',
    'no-call: g() -> ;',
  ])
})

void t.test('types, modules, the log and prose stay as they are', async (t) => {
  t.strictSame(
    faults(`import { a } from './a.ts'
type B = 'b' | 1
const c = d as { [key: string]: 'e' }
log.warn({ f: true }, 'g')
throw new TypeError('h')
k('a sentence', \`a \${b} c\`)`),
    ["no-call: k('a sentence', `a ${b} c`) -> ;"],
  )
  t.strictSame(faults("const a = (b as C[]).length === 0 || d!.e !== 'f'"), [
    "logical: (b as C[]).length === 0 || d!.e !== 'f' -> ((b as C[]).length === 0) && (d!.e !== 'f')",
    'equality: (b as C[]).length === 0 -> ((b as C[]).length) !== (0)',
    'number: 0 -> 1',
    "equality: d!.e !== 'f' -> (d!.e) === ('f')",
    "no-text: 'f' -> ''",
  ])
})

void t.test('a fault is found again by its name', async (t) => {
  const source = 'a &&\n  b && c && d'
  t.strictSame(
    mutantsOf('src/a.ts', source).map(({ id }) => id),
    ['src/a.ts:2:10:logical', 'src/a.ts:2:5:logical', 'src/a.ts:1:3:logical'],
  )
})

void t.test('each that is marked as equivalent is still there', async (t) => {
  const paths = globSync('src/**/*.ts')
  t.strictSame(stale(paths.flatMap((path) => mutantsOf(path, readFileSync(path, 'utf8')))), [])
})

void t.test(
  'each of the review is still there, once, and so is the test that kills it',
  async (t) => {
    for (const each of reviewed) {
      const source = readFileSync(each.path, 'utf8')
      const { start, was } = placed(each, source)
      t.equal(source.slice(start, start + was.length), each.was)
      t.ok(existsSync(each.test), each.test)
    }
    for (const source of ['if (b) d()', 'if (a) c(); if (a) d()']) {
      const lost = { path: 'src/a.ts', was: 'if (a)', becomes: '', breaks: '', test: '' }
      t.throws(() => placed(lost, source), { message: / times in src\/a\.ts: if \(a\)$/ })
    }
  },
)

void t.test('branches are what may run or not', async (t) => {
  const source = 'if (a) { b } else c; d ? e : f; g && h; for (const i of j) k; try {} catch { l }'
  t.strictSame(
    branchesOf('src/a.ts', source).map((offset) => source.slice(offset).trim()[0]),
    ['b', 'c', 'e', 'f', 'h', 'k', 'l'],
  )
})
