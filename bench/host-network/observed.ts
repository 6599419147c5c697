import type { Json } from '../../src/api/kube/json.ts'
import { listAt, textAt, valueAt } from '../../src/api/kube/json-at.ts'
import { countsOf, type Result } from './outcome.ts'
import type { Change } from './series.ts'
import type { Workload } from './workloads.ts'

/** A row as it was seen once. */
export interface Observed extends Result {
  /** From the creation of the first pod until the last change of what pods came to. */
  readonly settledMs: number
  /** How long was looked: until then the rest was counted. */
  readonly watchedMs: number
  readonly restarts: number
  /** How often events of each reason were told. */
  readonly events: Readonly<Record<string, number>>
  /** How often the API was written to: `kubelet patch pods/status`. */
  readonly writes: Readonly<Record<string, number>>
  readonly changes: readonly Change[]
  /** Where something happens: when, and what it cost. */
  readonly happened?: Happened
  /** What a node used while nothing more happened, the mean of the nodes. */
  readonly node?: {
    readonly cores: number
    readonly megabytes: number
    readonly hubMegabytes: number
    /** How long its hub had been running: one that has just started may hold more. */
    readonly hubSeconds?: number
  }
}

/** Seconds without service. */
export interface Happened {
  /** From the creation of the first pod. */
  readonly atMs: number
  /**
   * From then on with fewer pods serving than before, of those that are left in the end; where it
   * `isEndless`, only as long as was looked.
   */
  readonly shortMs: number
  /** Of these, with none serving. */
  readonly noneMs: number
}

const serves = ({ state }: Change): boolean => state === 'Serving' || state === 'Shared'

/** What it cost, where it began at `atMs`, with the change of that number. */
export function happenedFrom(
  atMs: number,
  first: number,
  { changes, endMs }: { readonly changes: readonly Change[]; readonly endMs: number },
): Happened {
  const serving = new Map<string, boolean>()
  /** How many serve after each change. */
  const counts = changes.map((change) => {
    serving.set(change.pod, serves(change))
    return [...serving.values()].filter(Boolean).length
  })
  const before = counts[first - 1] ?? 0
  const last = new Map(changes.map(({ pod, state }) => [pod, state]))
  const left = [...last.values()].filter((state) => state !== 'Gone').length
  const enough = Math.min(before, left)
  const spans = [
    { from: atMs, count: before },
    ...changes.slice(first).map(({ ms }, at) => ({ from: ms, count: counts[first + at] ?? 0 })),
  ]
  const during = (isSo: (count: number) => boolean): number =>
    spans.reduce(
      (sum, { from, count }, at) =>
        isSo(count) ? sum + (spans[at + 1]?.from ?? endMs) - from : sum,
      0,
    )
  return {
    atMs,
    shortMs: during((count) => count < enough),
    noneMs: enough === 0 ? 0 : during((count) => count === 0),
  }
}

/**
 * Whether service was still short when the looking ended, or in a reboot when the link was mended:
 * what is counted of it is then how long was looked, and not how long it lasts.
 */
export function isEndless(workload: Pick<Workload, 'happens'>, seen: Observed): boolean {
  const { happened, remarks } = seen
  if (happened === undefined) return false
  const before = statesAt(seen, happened.atMs).filter(serves).length
  if (workload.happens === 'reboot') return (remarks['served without a link'] ?? 0) < before
  const left = statesAt(seen, Infinity).filter(({ state }) => state !== 'Gone')
  return left.filter(serves).length < Math.min(before, left.length)
}

/** Whether no pod served that what happens could have taken service from. */
export const hasNothingToLose = (seen: Observed): boolean =>
  seen.happened !== undefined && !statesAt(seen, seen.happened.atMs).some(serves)

/** How many pods were what when it happened; `undefined` where nothing did. */
export const countsBefore = (seen: Observed): Readonly<Record<string, number>> | undefined =>
  seen.happened &&
  countsOf(
    statesAt(seen, seen.happened.atMs)
      .map(({ state }) => state)
      .filter((state) => state !== 'Gone'),
  )

/** Of each pod that had been created by then, its last change. */
const statesAt = ({ changes }: Observed, ms: number): readonly Change[] => [
  ...new Map(changes.filter((each) => each.ms < ms).map((each) => [each.pod, each])).values(),
]

/**
 * Events by reason, of those objects alone: what is told late of a former row is none of this one.
 * What was told again is counted in the event.
 */
export function timesTold(
  list: readonly Json[],
  ids: ReadonlySet<string>,
): Readonly<Record<string, number>> {
  const told: Record<string, number> = {}
  for (const event of list) {
    if (!ids.has(textAt(event, 'involvedObject', 'uid'))) continue
    const times = Math.max(
      1,
      Number(valueAt(event, 'count') ?? 0),
      Number(valueAt(event, 'series', 'count') ?? 0),
    )
    const reason = textAt(event, 'reason')
    told[reason] = (told[reason] ?? 0) + times
  }
  return told
}

/** Whether the API server refuses a pod for what its namespace enforces, and for nothing else. */
export const breaksBaseline = (answer: Json): boolean =>
  textAt(answer, 'message').includes('violates PodSecurity "baseline:')

/** Of the container that answers. */
export const mainStatusOf = (pod: Json | undefined): Json | undefined =>
  listAt(pod, 'status', 'containerStatuses').find((status) => textAt(status, 'name') === 'main')

/** Whether the status of a pod is of the container that runs, and not of one before it. */
export const tellsOf = (pod: Json | undefined, running: string | undefined): boolean =>
  running !== undefined && textAt(mainStatusOf(pod), 'containerID').endsWith(`://${running}`)

/** Whether the controller of a Deployment goes by what was written. */
export const hasTakenUp = (deployment: Json, written: Json): boolean =>
  Number(valueAt(deployment, 'status', 'observedGeneration') ?? 0) >=
  Number(valueAt(written, 'metadata', 'generation'))
