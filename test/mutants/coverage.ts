/**
 * Which file of tests executes what of src/, with all its processes and threads; kept until a file
 * that it loads changes.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { either, executedOf, type Executed, type FunctionCoverage } from './executed.ts'
import type { Workspace } from './workspace.ts'

export interface TestCoverage {
  readonly test: string
  readonly passed: boolean
  readonly ms: number
  /** Every file of the repository that it loads, with its hash. */
  readonly loaded: Readonly<Record<string, string>>
  readonly executed: Readonly<Record<string, Executed>>
}

/** The hash of each file of the repository. */
export type Hashes = ReadonlyMap<string, string>

export const hashesOf = (root: string, files: readonly string[]): Hashes =>
  new Map(
    files
      .filter((path) => path.endsWith('.ts'))
      .map((path) => [path, hash(readFileSync(join(root, path)))]),
  )

const hash = (data: string | Buffer): string => createHash('sha1').update(data).digest('base64')

/** No test of the fast tier comes near it, beside other work. */
const limitMs = 600_000

export class Coverage {
  readonly #folder: string
  readonly #hashes: Hashes

  constructor(cache: string, hashes: Hashes) {
    this.#folder = join(cache, 'coverage')
    this.#hashes = hashes
    mkdirSync(this.#folder, { recursive: true })
  }

  /** What is known of a file of tests, if nothing has changed since that it loads. */
  known(test: string): TestCoverage | undefined {
    let known: TestCoverage
    try {
      known = JSON.parse(readFileSync(this.#fileOf(test), 'utf8')) as TestCoverage
    } catch {
      return undefined
    }
    const same = Object.entries(known.loaded).every(([path, its]) => this.#hashes.get(path) === its)
    return same && known.passed ? known : undefined
  }

  /** Runs a file of tests; once more if it fails, for the machine may have been busy. */
  async measure(test: string, workspace: Workspace): Promise<TestCoverage> {
    const first = await this.#measureOnce(test, workspace)
    const measured = first.passed ? first : await this.#measureOnce(test, workspace)
    writeFileSync(this.#fileOf(test), JSON.stringify(measured))
    return measured
  }

  async #measureOnce(test: string, workspace: Workspace): Promise<TestCoverage> {
    const folder = workspace.emptyFolder('coverage')
    const { outcome, ms } = await workspace.run(test, {
      limitMs,
      env: { NODE_V8_COVERAGE: folder },
    })
    return { test, passed: outcome === 'passed', ms, ...this.#read(folder, test, workspace.root) }
  }

  #read(folder: string, test: string, root: string): Pick<TestCoverage, 'loaded' | 'executed'> {
    const prefix = `${pathToFileURL(root).href}/`
    const executed: Record<string, Executed> = {}
    const loaded: Record<string, string> = { [test]: this.#hashes.get(test) ?? '' }
    for (const name of readdirSync(folder)) {
      for (const { url, functions } of readCoverage(join(folder, name))) {
        if (!url.startsWith(prefix)) continue
        const path = decodeURIComponent(url.slice(prefix.length)).replace(/[?#].*/, '')
        const its = this.#hashes.get(path)
        if (its === undefined) continue
        loaded[path] = its
        if (path.startsWith('src/') || path.startsWith('filters/'))
          executed[path] = either(executed[path] ?? [], executedOf(functions))
      }
    }
    return { loaded, executed }
  }

  readonly #fileOf = (test: string): string =>
    join(this.#folder, `${test.replaceAll('/', '+')}.json`)
}

interface Script {
  readonly url: string
  readonly functions: readonly FunctionCoverage[]
}

/** None of a process that was killed while it wrote. */
function readCoverage(file: string): readonly Script[] {
  try {
    return (JSON.parse(readFileSync(file, 'utf8')) as { result: readonly Script[] }).result
  } catch (error) {
    if (error instanceof SyntaxError) return []
    throw error
  }
}
