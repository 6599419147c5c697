// npm test and npm run test:cluster: one tier of the tests, and what it came to. CONTRIBUTING.md names the tiers.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream, globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { noControlPlane } from '../kit/control-plane.ts'
import { readResults, type Results } from './tap-results.ts'

/** Where the tests are that are of a real control plane, and of nothing without it. */
const ofControlPlane = 'test/control-plane/'

/** The longest begin first, so that none of them runs alone at the end. */
const longest = ['kubectl', 'offline-reboot', 'propagation', 'versions', 'failover', 'reflectors']
  .map((name) => `${ofControlPlane}${name}.test.ts`)
  .toReversed()

interface Tier {
  readonly files: readonly string[]
  /** What this tier leaves to another, a line each. */
  readonly left: readonly string[]
}

const all = globSync('test/**/*.test.ts').toSorted()

const tiers: Readonly<Record<string, () => Tier>> = {
  fast: () => {
    const files = all.filter((file) => !file.startsWith(ofControlPlane))
    return {
      files,
      left: [
        `${all.length - files.length} files with a real control plane: npm run test:cluster`,
        'thousands of sequences, kills and outages: npm run test:long',
      ],
    }
  },
  cluster: () => ({
    files: all
      .filter((file) => file.startsWith(ofControlPlane))
      .toSorted((a, b) => longest.indexOf(b) - longest.indexOf(a)),
    left: [],
  }),
}

interface Run {
  readonly status: number
  readonly results: Results
}

/** Runs tap: on a terminal with its own report, otherwise with TAP as its output. */
async function runTap(args: readonly string[]): Promise<Run> {
  const reporter = args.find((arg) => arg.startsWith('--reporter='))?.slice('--reporter='.length)
  if (reporter === 'tap' || (reporter === undefined && !process.stdout.isTTY)) {
    const tap = spawn('tap', ['--reporter=tap', ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
    const exit = once(tap, 'exit') as Promise<[number | null]>
    const lines: string[] = []
    for await (const line of createInterface({ input: tap.stdout })) {
      say(line)
      lines.push(line)
    }
    return { status: (await exit)[0] ?? 1, results: readResults(lines) }
  }
  // tap prints a report or TAP, so what a report leaves out goes by a file.
  const folder = mkdtempSync(join(tmpdir(), 'nodehub-tests-'))
  try {
    const file = join(folder, 'run.tap')
    const tap = spawn('tap', [...args, `--output-file=${file}`], { stdio: 'inherit' })
    const [code] = (await once(tap, 'exit')) as [number | null]
    const lines = await Array.fromAsync(createInterface({ input: createReadStream(file) }))
    return { status: code ?? 1, results: readResults(lines) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const say = (line: string): void => console.log(line)

async function main([name = '', ...args]: readonly string[]): Promise<number> {
  const tier = tiers[name]
  if (tier === undefined) {
    console.error(`usage: run.ts ${Object.keys(tiers).join('|')} [FILE...] [OPTION OF tap...]`)
    return 2
  }
  const options = args.filter((arg) => arg.startsWith('-'))
  const chosen = args.filter((arg) => !arg.startsWith('-'))
  const reason = noControlPlane()
  if (name === 'cluster' && chosen.length === 0 && reason !== undefined) {
    say(`NOT RUN: ${tier().files.length} files with a real control plane: ${reason}`)
    say('0 passed, 0 failed')
    return 0
  }
  const { files, left } = chosen.length > 0 ? { files: chosen, left: [] } : tier()
  const began = performance.now()
  const { status, results } = await runTap([...options, ...files])
  const { passed, failed, skipped, empty } = results
  const seconds = ((performance.now() - began) / 1000).toFixed(0)
  say(`\n${files.length} files in ${seconds} s; the longest:`)
  for (const { path, ms } of results.files.slice(0, 10))
    say(`  ${(ms / 1000).toFixed(1).padStart(6)} s  ${path}`)
  for (const each of empty) say(`PASSED WITHOUT AN ASSERTION: ${each}`)
  const reasons = [...skipped].map(([reason, count]) => `${count} tests: ${reason}`)
  const notRun = [...left, ...reasons]
  if (notRun.length > 0) say(`NOT RUN: ${notRun.join('; ')}`)
  const count = [...skipped.values()].reduce((sum, each) => sum + each, 0)
  if (passed === 0) say('no assertion passed')
  say(`${passed} passed, ${failed + empty.length} failed${count > 0 ? `, ${count} skipped` : ''}`)
  return status === 0 && empty.length === 0 && (passed > 0 || count > 0) ? 0 : 1
}

process.exitCode = await main(process.argv.slice(2))
