/**
 * Tries mutants: runs the tests that execute the place, the likeliest first, until one of them
 * fails.
 */
import type { TestCoverage } from './coverage.ts'
import { ran } from './executed.ts'
import type { Mutant } from './places.ts'
import type { Workspace } from './workspace.ts'

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

export class Trials {
  readonly #tests: readonly TestCoverage[]
  readonly #budgetMs: number

  /**
   * `tests` are green without a mutant. `budgetMs` of what they took then is what one mutant is
   * given.
   */
  constructor(tests: readonly TestCoverage[], budgetMs: number) {
    this.#tests = tests
    this.#budgetMs = budgetMs
  }

  /** Runs in `workspace`, which is as it was afterwards. */
  async try(mutant: Mutant, workspace: Workspace): Promise<Tried> {
    const covering = this.#tests.filter(({ executed }) =>
      ran(executed[mutant.path] ?? [], mutant.reachedAt),
    )
    const chosen = this.#withinBudget(covering.toSorted(likeliest(mutant.path)))
    const source = workspace.read(mutant.path)
    const end = mutant.start + mutant.was.length
    const result = { mutant, covering: covering.length, ran: chosen.length }
    try {
      workspace.write(
        mutant.path,
        source.slice(0, mutant.start) + mutant.becomes + source.slice(end),
      )
      for (const { test, ms } of chosen) {
        const { outcome, output } = await workspace.run(test, { limitMs: limitOf(ms) })
        if (outcome === 'passed') continue
        const fate = outcome === 'failed' ? 'killed' : 'timed out'
        return { ...result, fate, by: test, output }
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

/** The test of this very file, those of its folder, then the others; the fastest first. */
function likeliest(path: string): (a: TestCoverage, b: TestCoverage) => number {
  const own = path.replace(/^src\//, 'test/').replace(/\.ts$/, '.test.ts')
  const folder = own.slice(0, own.lastIndexOf('/') + 1)
  const rank = ({ test }: TestCoverage): number =>
    test === own ? 0 : test.startsWith(folder) ? 1 : 2
  return (a, b) => rank(a) - rank(b) || a.ms - b.ms
}
