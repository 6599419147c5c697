import t from 'tap'
import { execFile, type ExecFileException } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { loadFilters } from '../../src/hub/filter/own/load.ts'
import { FilterFolder } from '../kit/own-filter.ts'

t.setTimeout(300_000) // processes that start take their time on a busy machine

/** The blocks of code in filters/README.md, of one language, in their order. */
function blocks(language: string): readonly string[] {
  const text = readFileSync('filters/README.md', 'utf8')
  return [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)]
    .filter(([, name]) => name === language)
    .map(([, , block = '']) => block)
}

const blockWith = (language: string, text: string): string => {
  const found = blocks(language).find((block) => block.includes(text))
  if (found === undefined) throw new Error(`filters/README.md has no ${language} with ${text}`)
  return found
}

/** The repository, with the README's files where the README says they stand. */
function withExamples(): string {
  const folder = new FilterFolder(t).path
  const files = {
    'filters/without-debug.ts': blockWith('ts', 'export const withoutDebug'),
    'test/filters/without-debug.test.ts': blockWith('ts', 'void t.test('),
  }
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true, mode: 0o700 })
    writeFileSync(join(folder, file), content, { mode: 0o600 })
  }
  for (const name of ['src', 'test/kit', 'node_modules', 'package.json'])
    symlinkSync(resolve(name), join(folder, name))
  return folder
}

const folder = withExamples()

interface Outcome {
  readonly code: unknown
  readonly said: string
}

function run(cwd: string, ...argv: readonly string[]): Promise<Outcome> {
  const { promise, resolve: done } = Promise.withResolvers<Outcome>()
  // A test in a test would speak to the runner of this one.
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const env = { PATH, NODE_COMPILE_CACHE }
  const over = (error: ExecFileException | null, out: string, err: string): void =>
    done({ code: error ? error.code : 0, said: out + err })
  execFile(process.execPath, [...argv], { cwd, env }, over)
  return promise
}

void t.test('the test of the example passes', async (t) => {
  const { code, said } = await run(folder, 'test/filters/without-debug.test.ts')
  t.equal(code, 0, said)
  t.match(said, /^ok 1 - a service for debugging is withheld/m)
  t.match(said, /^ok 2 - of others the port for debugging is left out/m)
})

void t.test('check-config takes it', async (t) => {
  const module = join(folder, 'filters/without-debug.ts')
  const ports = ['--proxy-port=0', '--serve-port=0', '--proxy-secure-port=0']
  const flags = [
    '--server-addr=https://a',
    '--bootstrap-mode=anonymous',
    ...ports,
    `--filter-module=${module}`,
  ]
  const { code, said } = await run('.', 'src/main.ts', 'check-config', ...flags)
  t.equal(code, 0, said)
})

void t.test('the filters in docs/filters.md can be used', async (t) => {
  const text = readFileSync('docs/filters.md', 'utf8')
  const module = /^```js\n([\s\S]*?)^```$/m.exec(text)?.[1] ?? ''
  const loaded = await loadFilters([new FilterFolder(t).write('docs.mjs', module)], [])
  t.match(loaded, { filters: [{ name: 'only-our-zone' }, { name: 'plain-services' }] })
})
