import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { inspect as shown } from 'node:util'
import { openStore } from '../../src/hub/store/log/open.ts'
import { roundOf, type Random } from '../fuzz/random.ts'
import { plainNode } from '../kit/cluster/plain-node.ts'
import { FaultyDisk, readSteps, type DiskStep } from './disk.ts'
import { FragileDisk } from './power-cut.ts'
import { storePaths, plain, registers, stateIn, type WorkloadLine } from './workload.ts'

/**
 * What one register may hold: any state from the last one that outlives a power cut up to the last
 * that was begun.
 */
class Expected {
  readonly #begun = ['none']
  #failed = false
  #done = 0
  #durable = 0

  begin(state: string): void {
    this.#begun.push(state)
  }

  done(): void {
    this.#done = this.#begun.length - 1
    this.#failed = false
  }

  /** The register is as it was before, or unknown, until it is written again. */
  failed(): void {
    this.#begun.push('none')
    this.#failed = true
  }

  /** What was done before something that outlives a power cut outlives it too. */
  synced(): void {
    if (!this.#failed) this.#durable = this.#done
  }

  allows(state: string): boolean {
    return this.#begun.includes(state, this.#durable)
  }

  /** Before it was `state`, from the oldest on. */
  before(state: string): readonly string[] {
    return this.#begun.slice(1, this.#begun.lastIndexOf(state))
  }

  toString(): string {
    return this.#begun.slice(this.#durable).join('\n  or ')
  }
}

export interface PowerCuts {
  /** An empty folder of the caller's. */
  readonly folder: string
  readonly library: string
  readonly seed: number
  readonly rounds: number
  readonly cuts: number
  /** So many syncs go well before one fails; absent: all do. */
  readonly failEverySync?: number
  /**
   * What waits for no disk is synced within so many milliseconds, and this is waited for now and
   * then; absent: never.
   */
  readonly syncWithinMs?: number
  /**
   * There was a run before, which was killed instead of taking this step; absent: there was none.
   */
  readonly killedAt?: number
}

/**
 * Lets another process write to a store, and cuts its power at `cuts` moments: opens each state
 * that a cut could leave. Returns the faults, a line each.
 */
export async function cutPower({ folder: given, ...of }: PowerCuts): Promise<string[]> {
  const folder = realpathSync(given)
  const [live, log, found] = ['live', 'log', 'found'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  mkdirSync(live)
  using watched = new FaultyDisk(of.library, live, join(folder, 'control'), log)
  if (of.failEverySync !== undefined) watched.failEverySync(of.failEverySync)
  const [command, args] = plainNode(
    join(import.meta.dirname, 'store-child.ts'),
    live,
    String(of.seed),
    String(of.rounds),
    ...(of.syncWithinMs === undefined ? [] : [String(of.syncWithinMs)]),
  )
  const env = { ...process.env, ...watched.env }
  if (of.killedAt !== undefined) {
    watched.killAt(of.killedAt)
    spawnSync(command, args, { env })
    watched.killAt(0)
  }
  execFileSync(command, args, { env, stdio: 'pipe' })
  const steps = readSteps(log)
  const disk = new FragileDisk(live)
  const expected = new Map(registers.map((name) => [name, new Expected()]))
  const random = roundOf(of.seed, 0)
  const moments = momentsIn(steps, of.cuts, random)
  const wrong: string[] = []
  let waiting = 0
  let doubt: Doubt | undefined
  for (const [at, step] of steps.entries()) {
    if (step.kind === 'mark') {
      const said = JSON.parse(step.text) as WorkloadLine
      hear(expected, said)
      if (doubt?.isOver(said)) doubt = undefined
    } else disk.feed(step, random)
    if (step.kind === 'lost') doubt = new Doubt()
    waiting += moments.get(at) ?? 0
    for (let count = doubt ? 0 : waiting; count > 0; count--, waiting--) {
      rmSync(found, { recursive: true, force: true })
      disk.cutPower(found, roundOf(of.seed, at * 16 + count))
      const where = `seed ${of.seed}, step ${at} of ${steps.length}, ${count}: `
      wrong.push(...(await inspect(found, expected)).map((what) => where + what))
    }
  }
  return wrong
}

/**
 * A disk that fails and loses power before it has recovered may have lost anything. It has
 * recovered when a write is done that began after the store knew of the failure: the result of an
 * earlier one may be reported only now, and until then the store goes on.
 */
class Doubt {
  readonly #begun = new Set<string>()
  #isNoticed = false

  isOver(said: WorkloadLine): boolean {
    if ('noticed' in said) this.#isNoticed = true
    if ('begin' in said && this.#isNoticed) this.#begun.add(said.begin)
    return 'done' in said && this.#begun.has(said.done)
  }
}

function hear(expected: ReadonlyMap<string, Expected>, said: WorkloadLine): void {
  if ('begin' in said) return expected.get(said.begin)?.begin(said.state)
  if ('synced' in said) {
    for (const each of expected.values()) each.synced()
    return
  }
  if ('failed' in said) return expected.get(said.failed)?.failed()
  if ('noticed' in said) return undefined
  const done = expected.get(said.done)
  done?.done()
  if (said.outlives === 'itself') done?.synced()
  if (said.outlives === 'all') for (const each of expected.values()) each.synced()
}

const saidAt = (step: DiskStep | undefined): string => (step?.kind === 'mark' ? step.text : '')

/**
 * Steps after which the power is cut, and how often: most of them around syncs, and where something
 * has just been promised.
 */
function momentsIn(steps: readonly DiskStep[], cuts: number, random: Random): Map<number, number> {
  const of = (kind: DiskStep['kind']): number[] =>
    [...steps.keys()].filter((at) => steps[at]?.kind === kind)
  const [syncs, marks] = [of('sync'), of('mark')]
  const synced = marks.filter((at) => saidAt(steps[at]).includes('synced'))
  const moments = new Map<number, number>()
  for (let i = 0; i < cuts; i++) {
    const at = random.of([
      random.below(steps.length),
      random.of(marks),
      random.of(syncs) + random.below(4) - 1,
      ...(synced.length > 0 ? [random.of(synced)] : []),
    ])
    moments.set(at, (moments.get(at) ?? 0) + 1)
  }
  return moments
}

async function inspect(
  folder: string,
  expected: ReadonlyMap<string, Expected>,
): Promise<readonly string[]> {
  const wrong: string[] = []
  for (const file of filesIn(folder))
    if (readFileSync(file).includes(plain)) wrong.push(`${file} holds a secret`)
  await using store = await openStore({
    ...storePaths(folder),
    report: (kind, failure) => wrong.push(`${kind}: ${shown(failure)}`),
  })
  for (const [name, states] of expected) {
    const state = stateIn(store, name)
    if (!states.allows(state)) wrong.push(`${name} is\n     ${state}\n  not ${states}`)
  }
  return wrong
}

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
