/**
 * `npm run mutants -- [--folder src/x]... [--count N|all] [--seed N] [--mutant ID]... [--test
 * GLOB]... [--coverage] [--jobs N] [--budget SECONDS]`: puts small faults into the sources, one at
 * a time, and runs the tests of the fast tier that execute the place; one of them must fail. Of all
 * faults that there are in the folders it takes N at random. What tests execute is kept in
 * .cache/mutants/: after a change only those are measured again that load what has changed.
 */
import { globSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, matchesGlob } from 'node:path'
import { parseArgs } from 'node:util'
import { Random } from '../fuzz/random.ts'
import { Coverage, hashesOf, type TestCoverage } from './coverage.ts'
import { either, ran, type Executed } from './executed.ts'
import { branchesOf, mutantsOf, type Mutant } from './places.ts'
import { core, sourcesIn } from './sources.ts'
import { share, table } from './table.ts'
import { Trials, type Tried } from './trial.ts'
import { filesOf, Workspace } from './workspace.ts'

const root = join(import.meta.dirname, '..', '..')
const cache = join(root, '.cache', 'mutants')

const { values } = parseArgs({
  options: {
    folder: { type: 'string', multiple: true, default: [...core] },
    count: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    mutant: { type: 'string', multiple: true },
    test: { type: 'string', multiple: true, default: ['test/**'] },
    coverage: { type: 'boolean', default: false },
    jobs: { type: 'string', default: String(availableParallelism()) },
    budget: { type: 'string', default: '60' },
  },
})

const say = (line: string): void => console.log(line)

/**
 * Does each with one of the workspaces, as many at a time as there are; what comes of them is in
 * the order of `all`.
 */
async function each<T, R>(
  all: readonly T[],
  workspaces: readonly Workspace[],
  act: (item: T, workspace: Workspace) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  let next = 0
  const work = async (workspace: Workspace): Promise<void> => {
    for (let index = next++; index < all.length; index = next++)
      results[index] = await act(all[index] as T, workspace)
  }
  await Promise.all(workspaces.map(work))
  return results
}

async function covered(
  files: readonly string[],
  workspaces: readonly Workspace[],
  patterns: readonly string[],
): Promise<TestCoverage[]> {
  const tests = files.filter(
    (path) =>
      path.endsWith('.test.ts') &&
      !path.startsWith('test/control-plane/') &&
      patterns.some((pattern) => matchesGlob(path, pattern)),
  )
  const coverage = new Coverage(cache, hashesOf(root, files))
  const known = new Map(tests.map((test) => [test, coverage.known(test)]))
  const unknown = tests.filter((test) => known.get(test) === undefined)
  say(`${tests.length} files of tests, ${unknown.length} of them to be measured`)
  const measured = await each(unknown, workspaces, async (test, workspace) => {
    const its = await coverage.measure(test, workspace)
    say(`  ${its.passed ? 'measured' : 'RED     '} ${seconds(its.ms)} s  ${test}`)
    return its
  })
  const all = [...known.values(), ...measured].filter((its) => its !== undefined)
  for (const { test } of all.filter(({ passed }) => !passed))
    say(`LEFT OUT: ${test} fails without a mutant`)
  return all.filter(({ passed }) => passed)
}

const seconds = (ms: number): string => (ms / 1000).toFixed(1).padStart(6)

/** src/api/codec of src/api/codec/json/edit.ts, src of src/main.ts. */
const folderOf = (path: string): string => path.split('/').slice(0, -1).slice(0, 3).join('/')

function sayBranches(tests: readonly TestCoverage[], workspace: Workspace): void {
  const folders = new Map<string, { branches: number; taken: number }>()
  // What was measured: the sources may have changed since.
  const paths = globSync(['src/**/*.ts', 'filters/**/*.ts'], { cwd: workspace.root })
  for (const path of paths.toSorted()) {
    const executed = tests.reduce<Executed>(
      (all, { executed: its }) => either(all, its[path] ?? []),
      [],
    )
    const branches = branchesOf(path, workspace.read(path))
    const sum = folders.get(folderOf(path)) ?? { branches: 0, taken: 0 }
    sum.branches += branches.length
    sum.taken += branches.filter((offset) => ran(executed, offset)).length
    folders.set(folderOf(path), sum)
  }
  const rows = [...folders].map(([name, { branches, taken }]) => [
    name,
    branches,
    taken,
    share(taken, branches),
  ])
  say(`\n${table([['branches of', 'there are', 'taken', ''], ...rows])}`)
}

function chosenOf(workspace: Workspace): Mutant[] {
  const folders = values.mutant?.map((id) => id.slice(0, id.indexOf(':'))) ?? values.folder
  const all = sourcesIn(workspace.root, folders).flatMap((path) =>
    mutantsOf(path, workspace.read(path)),
  )
  if (values.mutant) {
    const unknown = values.mutant.filter((id) => !all.some((mutant) => mutant.id === id))
    if (unknown.length > 0) throw new Error(`no such mutant: ${unknown.join(', ')}`)
    return all.filter(({ id }) => values.mutant?.includes(id))
  }
  const random = new Random(Number(values.seed))
  const count = values.count === 'all' ? all.length : Math.min(Number(values.count), all.length)
  say(`${count} of ${all.length} mutants, seed ${values.seed}`)
  return Array.from({ length: count }, () => all.splice(random.below(all.length), 1)).flat()
}

function sayTried({ mutant, fate, by, covering, ran: count, output = '' }: Tried): void {
  const short = (text: string): string => JSON.stringify(text.replace(/\s+/g, ' ').slice(0, 70))
  const tests = by ?? (count < covering ? `${count} of ${covering} tests` : `${count} tests`)
  say(`  ${fate.padEnd(11)}  ${mutant.id}  ${tests}`)
  const [before = '', failed] = output.split(/^ *not ok /m)
  const title = [...before.matchAll(/# Subtest: (.+)/g)].at(-1)?.[1]
  if (failed !== undefined && title !== undefined) say(`${' '.repeat(15)}“${title}”`)
  if (by === undefined) say(`${' '.repeat(15)}${short(mutant.was)} -> ${short(mutant.becomes)}`)
}

function sayScore(tried: readonly Tried[]): void {
  const fates = ['killed', 'timed out', 'survived', 'not reached'] as const
  const row = (name: string, ofIt: readonly Tried[]): (string | number)[] => {
    const counts = fates.map((fate) => ofIt.filter((each) => each.fate === fate).length)
    const found = (counts[0] ?? 0) + (counts[1] ?? 0)
    return [name, ofIt.length, ...counts, share(found, ofIt.length)]
  }
  const folders = Map.groupBy(tried, ({ mutant }) => folderOf(mutant.path))
  const rows = [...folders].toSorted(([a], [b]) => a.localeCompare(b))
  const sum = row('all', tried)
  const head = ['folder', 'mutants', ...fates, 'found']
  say(`\n${table([head, ...rows.map(([name, ofIt]) => row(name, ofIt)), sum])}`)
  const cut = tried.filter((each) => each.fate === 'survived' && each.ran < each.covering)
  if (cut.length > 0)
    say(`${cut.length} survived without all tests that execute them: --budget ${values.budget} s`)
}

async function main(): Promise<number> {
  const files = filesOf(root)
  using stack = new DisposableStack()
  const workspaces = Array.from({ length: Number(values.jobs) }, () =>
    stack.use(new Workspace(root, files)),
  )
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      stack.dispose()
      process.exit(1)
    })
  }
  const [first] = workspaces
  if (first === undefined) throw new Error('--jobs must be 1 at least')
  // Before the tests are measured, which takes long: a name may be wrong.
  const chosen = values.coverage ? [] : chosenOf(first)
  const tests = await covered(files, workspaces, values.test)
  if (values.mutant === undefined) sayBranches(tests, first)
  if (values.coverage) return 0

  const trials = new Trials(tests, Number(values.budget) * 1000)
  const tried = await each(chosen, workspaces, async (mutant, workspace) => {
    const result = await trials.try(mutant, workspace)
    sayTried(result)
    if (values.mutant && result.output !== undefined) say(result.output)
    return result
  })
  sayScore(tried)
  return tried.some(({ fate }) => fate === 'survived' || fate === 'not reached') ? 1 : 0
}

process.exitCode = await main()
