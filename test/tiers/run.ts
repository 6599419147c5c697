// npm test and npm run test:cluster: one tier of the tests, and what it came to. CONTRIBUTING.md
// names the tiers.
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  globSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statfsSync,
} from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { Writable } from 'node:stream'
import { parseArgs } from 'node:util'
import { waitedForSeconds } from '../../bench/measure/process-usage.ts'
import { noControlPlane } from '../kit/control-plane.ts'
import { bundlesVariable } from '../kit/hub-programs.ts'
import { runFolderVariable } from '../kit/once-in-a-run.ts'
import { bundlesIn } from './bundles.ts'
import { groupsOf } from './groups.ts'
import { isProcessorComment, readResults, type Results } from './tap-results.ts'
import { timingsOf } from './timings.ts'

/** Where the tests are that are of a real control plane, and of nothing without it. */
const ofControlPlane = 'test/control-plane/'

/**
 * The longest begin first, so that none of them runs alone at the end; then those of whole hubs
 * and of stores.
 */
const longest = [
  ...(
    'scenarios/held-sockets scenarios/resumed-watches status-page/page ' +
    'cli/adopt-command bench/rows model/model packaging/main scenarios/adoption cli/cli ' +
    'model/broken-store scenarios/host-network-propagation hub/wiring/dummy-interface ' +
    'scenarios/out-of-date-certificates scenarios/cut-lists hub/store/log/log-store ' +
    'packaging/monitoring differential/sandbox ' +
    'attacks/stop-under-faults fuzz/upstream attacks/shown-token fuzz/codec crash/power-cut ' +
    'scenarios/boot crash/failing-disk node/adopt/swap attacks/unfinished-reviews ' +
    'attacks/dense-reviews crash/kills model/broken-watches cli/join-command'
  )
    .split(' ')
    .map((name) => `test/${name}.test.ts`),
  ...(
    'install adopt image serving-certificates exit-plan rotation expired-kubelet clean-debian ' +
    'host-network outages bare-node in-cluster kubectl offline-reboot ' +
    'propagation versions failover'
  )
    .split(' ')
    .map((name) => `${ofControlPlane}${name}.test.ts`),
].toReversed()

/** As they stand in `longest`, and then all others. */
const longestFirst = (files: readonly string[]): string[] =>
  files.toSorted((a, b) => length(b) - length(a))

const length = (file: string): number =>
  longest.indexOf(file) + (/^test\/(?:scenarios|cli|hub\/store)\//.test(file) ? 0.5 : 0)

interface Tier {
  readonly files: readonly string[]
  /** What this tier leaves to another, a line each. */
  readonly left: readonly string[]
  /** How many files run at a time. */
  readonly jobs: number
  /** Whether what the tests write may be in memory: no program of it has to find a disk there. */
  readonly inMemory: boolean
}

const all = globSync('test/**/*.test.ts').toSorted()

const tiers: Readonly<Record<string, () => Tier>> = {
  fast: () => {
    const files = longestFirst(all.filter((file) => !file.startsWith(ofControlPlane)))
    return {
      files,
      left: [
        `${all.length - files.length} files with a real control plane: npm run test:cluster`,
        'thousands of sequences, kills and outages: npm run test:long',
      ],
      // More than half of the time of a file is waiting: for a hub's threads, the disk, probes, the
      // ends of watches.
      jobs: 3 * availableParallelism() + 1,
      inMemory: true,
    }
  },
  cluster: () => ({
    files: longestFirst(all.filter((file) => file.startsWith(ofControlPlane))),
    left: [],
    // Four fifths of the time of a file is waiting: for kubelets, leases, the ends of certificates.
    jobs: 2 * availableParallelism() + 1,
    inMemory: false,
  }),
}

interface Options {
  /** As tap names its reporters. */
  readonly reporter: string
  /** For what tests write. */
  readonly tmpdir: string
  /** How many files run at a time. */
  readonly jobs: number
  /** Whether hubs are started from bundles. */
  readonly bundled: boolean
}

interface Run {
  readonly status: number
  readonly results: Results
}

/**
 * V8's code of what the tests and their hubs load, so that it is compiled once and not by each of
 * them.
 */
const compileCache = resolve('node_modules/.cache/compiled')

const bundles = resolve('node_modules/.cache/bundles')

const memory = '/dev/shm'
/** All that is written at a time takes some hundred megabytes. */
const enoughBytes = 4 * 2 ** 30

/**
 * A folder in memory, gone with this process, where the host has one with enough room: a hub that
 * starts or commits waits for its disk, and the processor works for that, too.
 */
function folderInMemory(): string | undefined {
  const { bavail = 0, bsize = 0 } = existsSync(memory) ? statfsSync(memory) : {}
  if (bavail * bsize < enoughBytes) return undefined
  const folder = folderOfRun(memory)
  // Some tests write as another user.
  chmodSync(folder, 0o1777)
  return folder
}

/** A folder that is gone with this process. */
function folderOfRun(parent: string): string {
  const folder = mkdtempSync(join(parent, 'nodehub-tests-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}

/** Where tap makes the folder that a test asks it for, named after the test's file. */
const testFolders = '.tap/fixtures'

const foldersOfTests = (): readonly string[] =>
  existsSync(testFolders) ? readdirSync(testFolders) : []

/** How the name of a folder names the file. */
const inName = (file: string): string => relative('', file).replace(/[^\w.-]+/g, '-')

/**
 * Runs the files and reads what they print, which is TAP. On a terminal, or where a reporter is
 * named, tap renders it; otherwise it is printed as it is.
 */
async function runFiles(groups: readonly string[][], options: Options): Promise<Run> {
  const named = groups.map((files) => files.join())
  const child = spawn(process.execPath, ['test/tiers/files.ts', `${options.jobs}`, ...named], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      NODE_COMPILE_CACHE: compileCache,
      TMPDIR: options.tmpdir,
      [runFolderVariable]: folderOfRun(options.tmpdir),
      ...(options.bundled && { [bundlesVariable]: await bundlesIn(bundles) }),
    },
  })
  process.once('exit', () => child.kill())
  const exit = once(child, 'exit') as Promise<[number | null]>
  const { reporter } = options
  const report = reporter === 'tap' ? undefined : rendering(reporter)
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line)
    if (isProcessorComment(line)) continue
    if (!report) say(line)
    else if (!report.stdin.write(`${line}\n`)) await once(report.stdin, 'drain')
  }
  const [code] = await exit
  if (report) {
    report.stdin.end()
    await once(report, 'exit')
  }
  return { status: code ?? 1, results: readResults(lines) }
}

const rendering = (reporter: string): ChildProcessByStdio<Writable, null, null> =>
  spawn('tap', [`--reporter=${reporter}`, '-'], { stdio: ['pipe', 'inherit', 'inherit'] })

const say = (line: string): void => console.log(line)

const read = () =>
  parseArgs({
    allowPositionals: true,
    options: {
      reporter: { type: 'string' },
      jobs: { type: 'string' },
      timings: { type: 'boolean', default: false },
    },
  })

async function main({ values, positionals }: ReturnType<typeof read>): Promise<number> {
  const [name = '', ...chosen] = positionals
  const tier = tiers[name]
  if (tier === undefined) {
    console.error(`usage: run.ts ${Object.keys(tiers).join('|')} [FILE...] [OPTION...]`)
    return 2
  }
  const whole = tier()
  const reason = noControlPlane()
  if (name === 'cluster' && chosen.length === 0 && reason !== undefined) {
    say(`NOT RUN: ${whole.files.length} files with a real control plane: ${reason}`)
    say('0 passed, 0 failed')
    return 0
  }
  const { files, left } = chosen.length > 0 ? { files: chosen, left: [] } : whole
  const began = performance.now()
  const before = new Set(foldersOfTests())
  // What is named is run as it runs by itself.
  const groups = chosen.length > 0 ? files.map((file) => [file]) : groupsOf(files, longest)
  const { status, results } = await runFiles(groups, {
    reporter: values.reporter ?? (process.stdout.isTTY ? 'base' : 'tap'),
    jobs: Number(values.jobs ?? whole.jobs),
    // What is named is run from its sources, which its messages then name.
    bundled: chosen.length === 0,
    tmpdir: (whole.inMemory ? folderInMemory() : undefined) ?? tmpdir(),
  })
  const { passed, failed, skipped, empty } = results
  const seconds = (performance.now() - began) / 1000
  if (values.timings) say(`\n${timingsOf(results, { seconds, processor: waitedForSeconds() })}`)
  say(`\n${files.length} files in ${seconds.toFixed(0)} s; the longest:`)
  for (const { path, ms } of results.files.slice(0, 10))
    say(`  ${(ms / 1000).toFixed(1).padStart(6)} s  ${path}`)
  for (const each of empty) say(`PASSED WITHOUT AN ASSERTION: ${each}`)
  // A test that meets its own files of the run before fails, or passes for the wrong reason. One
  // that has failed may not have come to the end that takes them away.
  const stayed = foldersOfTests().filter(
    (folder) =>
      status === 0 && !before.has(folder) && files.some((file) => folder.includes(inName(file))),
  )
  for (const each of stayed) say(`LEFT BEHIND: ${testFolders}/${each}`)
  const reasons = [...skipped].map(([reason, count]) => `${count} tests: ${reason}`)
  const notRun = [...left, ...reasons]
  if (notRun.length > 0) say(`NOT RUN: ${notRun.join('; ')}`)
  const count = [...skipped.values()].reduce((sum, each) => sum + each, 0)
  if (passed === 0) say('no assertion passed')
  const faults = empty.length + stayed.length
  say(`${passed} passed, ${failed + faults} failed${count > 0 ? `, ${count} skipped` : ''}`)
  return status === 0 && faults === 0 && (passed > 0 || count > 0) ? 0 : 1
}

for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => process.exit(1))
try {
  process.exitCode = await main(read())
} catch (error) {
  if (!Error.isError(error) || !('code' in error)) throw error
  console.error(error.message)
  process.exitCode = 2
}
