import t from 'tap'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { readResults } from './tap-results.ts'

/** What several files come to that run in one process. */
function run(t: { testdir(content: Record<string, string>): string }, texts: readonly string[]) {
  const names = texts.map((_, at) => `${at}.test.ts`)
  const root = t.testdir(Object.fromEntries(names.map((name, at) => [name, texts[at] ?? ''])))
  const several = join(import.meta.dirname, 'several.ts')
  const paths = names.map((name) => join(root, name))
  const { status, stdout } = spawnSync(process.execPath, [several, ...paths], { encoding: 'utf8' })
  const points = stdout.matchAll(/^((?:not )?ok) \d+ - \S+\/(\d)\.test\.ts(?: |$)/gm)
  return {
    status,
    results: readResults(stdout.split('\n')),
    files: [...points].map(([, outcome, name]) => `${name} ${outcome}`),
  }
}

const passes = "import t from 'tap'\nt.test('a sentence', async (t) => t.pass())\n"

void t.test('each of several files is a test named after it, with those of its own', async (t) => {
  const { status, results, files } = run(t, [passes, passes])
  t.equal(status, 0)
  t.equal(results.passed, 2)
  t.strictSame(files, ['0 ok', '1 ok'])
})

void t.test('one that fails fails alone, and fails the process', async (t) => {
  const fails = passes.replace('t.pass()', 't.equal(1, 2)')
  const later =
    "import t from 'tap'\nt.test('a sentence', async (t) => { throw new Error('late') })"
  const { status, results, files } = run(t, [fails, passes, later])
  t.not(status, 0)
  t.equal(results.failed, 2)
  t.strictSame(files, ['0 not ok', '1 ok', '2 not ok'])
})

void t.test('one that cannot be loaded, or throws where no test catches it, fails', async (t) => {
  const { status, files } = run(t, ["import './missing.ts'", passes])
  t.not(status, 0)
  t.strictSame(files, ['0 not ok', '1 ok'])
  const throws = passes.replace('t.pass()', "setTimeout(() => { throw new Error('uncaught') }, 0)")
  t.not(run(t, [throws, passes]).status, 0)
})
