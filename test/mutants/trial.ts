/**
 * Tries mutants: runs the tests that execute the place, the likeliest first, until one of them
 * fails.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { keyOf, type TestCoverage } from './coverage.ts'
import { ran } from './executed.ts'
import type { Mutant } from './places.ts'
import type { Outcome, Workspace } from './workspace.ts'

export type Fate = 'killed' | 'timed out' | 'survived' | 'not reached'

export interface Tried {
  readonly mutant: Mutant
  readonly fate: Fate
  /** The test that failed. */
  readonly by?: string
  /** How many tests execute the place, and how many of them ran within the budget. */
  readonly covering: number
  readonly ran: number
  /** The end of what the test that failed printed, if it ran now. */
  readonly output?: string
}

/** What came of a test under a mutant, for as long as nothing changes that the test loads. */
type Known = Record<string, Record<string, { readonly key: string; readonly outcome: Outcome }>>

export class Trials {
  readonly #tests: readonly TestCoverage[]
  readonly #keys: ReadonlyMap<string, string>
  readonly #budgetMs: number
  readonly #anew: boolean
  readonly #file: string
  readonly #known: Known

  /**
   * `tests` are green without a mutant. `budgetMs` of what they took then is what one mutant is
   * given; `anew`: whatever is known.
   */
  constructor(cache: string, tests: readonly TestCoverage[], budgetMs: number, anew = false) {
    this.#anew = anew
    this.#tests = tests
    this.#keys = new Map(tests.map((each) => [each.test, keyOf(each)]))
    this.#budgetMs = budgetMs
    mkdirSync(cache, { recursive: true })
    this.#file = join(cache, 'outcomes.json')
    this.#known = readKnown(this.#file)
  }

  /** Runs in `workspace`, which is as it was afterwards. */
  async try(mutant: Mutant, workspace: Workspace): Promise<Tried> {
    const covering = this.#tests.filter(({ executed }) =>
      ran(executed[mutant.path] ?? [], mutant.reachedAt),
    )
    const before = (this.#known[`${mutant.id} ${mutant.was} ${mutant.becomes}`] ??= {})
    const chosen = this.#withinBudget(covering.toSorted(likeliest(mutant.path, before)))
    const source = workspace.read(mutant.path)
    const end = mutant.start + mutant.was.length
    const result = { mutant, covering: covering.length, ran: chosen.length }
    try {
      workspace.write(
        mutant.path,
        source.slice(0, mutant.start) + mutant.becomes + source.slice(end),
      )
      for (const { test, ms } of chosen) {
        const key = this.#keys.get(test) ?? ''
        const known = this.#anew ? undefined : before[test]
        let outcome = known?.key === key ? known.outcome : undefined
        let output: string | undefined
        if (outcome === undefined) {
          const now = await workspace.run(test, { limitMs: limitOf(ms) })
          ;({ outcome, output } = now)
          before[test] = { key, outcome }
          writeFileSync(this.#file, JSON.stringify(this.#known))
        }
        if (outcome === 'passed') continue
        const fate = outcome === 'failed' ? 'killed' : 'timed out'
        return { ...result, fate, by: test, ...(output !== undefined && { output }) }
      }
    } finally {
      workspace.write(mutant.path, source)
    }
    return { ...result, fate: covering.length === 0 ? 'not reached' : 'survived' }
  }

  #withinBudget(tests: readonly TestCoverage[]): TestCoverage[] {
    let left = this.#budgetMs
    return tests.filter(({ ms }, index) => {
      if (index > 0 && ms > left) return false
      left -= ms
      return true
    })
  }
}

/** Several times what it took, and something for a machine that has become busier. */
const limitOf = (ms: number): number => 20_000 + 4 * ms

/**
 * What failed before, the test of this very file, those of its folder, then the others; the fastest
 * first.
 */
function likeliest(
  path: string,
  before: Known[string],
): (a: TestCoverage, b: TestCoverage) => number {
  const own = path.replace(/^src\//, 'test/').replace(/\.ts$/, '.test.ts')
  const folder = own.slice(0, own.lastIndexOf('/') + 1)
  const rank = ({ test }: TestCoverage): number => {
    if (before[test] !== undefined && before[test].outcome !== 'passed') return 0
    if (test === own) return 1
    return test.startsWith(folder) ? 2 : 3
  }
  return (a, b) => rank(a) - rank(b) || a.ms - b.ms
}

function readKnown(file: string): Known {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Known
  } catch {
    return {}
  }
}
