/**
 * What becomes of a pod, by what happens: it answers with its own name on its port; it does, and so
 * does another, a connection here and a connection there; it runs and does not; its container ends
 * again and again; its kubelet refuses it; it is scheduled and its sandbox gets no network; it is
 * not scheduled; the API server does not take it.
 */
export const outcomes = [
  'Serving',
  'Shared',
  'NotServing',
  'CrashLoop',
  'Failed',
  'Stuck',
  'Unschedulable',
  'Refused',
] as const

export type Outcome = (typeof outcomes)[number]

/** Whether its containers run, or are started again and again. */
export const isRunning = (outcome: Outcome): boolean =>
  ['Serving', 'Shared', 'NotServing', 'CrashLoop'].includes(outcome)

/** What is also true of a pod, whatever the API says. */
export const remarks = [
  'Ready without serving',
  "changed the node's network",
  'of the new template',
  'served without a link',
] as const

export type Remark = (typeof remarks)[number]

/** The outcome of one pod, and what the API reports. */
export interface Fate {
  readonly outcome: Outcome
  /** Absent where the API has no such pod. */
  readonly said?: ReportedState
  /** Whether it runs, and on another network than the API says. */
  readonly misrepresented: boolean
  readonly remarks: readonly Remark[]
}

/** The part of a pod that API clients see: its phase, and the network that it requests. */
export type ReportedState = `${'Pending' | 'Running' | 'Failed'} on ${Network}`

type Network = 'the pod network' | "the host's network"

export const networkOf = (hostNetwork: boolean): Network =>
  hostNetwork ? "the host's network" : 'the pod network'

/** How many pods came to what, and what the API says of those that run against how they run. */
export interface Result {
  readonly counts: Counts<Outcome>
  readonly said: Counts<ReportedState>
  /** Pods that run on another network than the API says. */
  readonly misrepresented: number
  readonly remarks: Counts<Remark>
}

/** What a model expects. */
export interface Expected extends Result {
  /** What may come instead, where the scheduler has a choice. */
  readonly others?: readonly Expected[]
}

type Counts<Of extends string> = Readonly<Partial<Record<Of, number>>>

export const isAsExpected = (seen: Result, expected: Expected): boolean =>
  [expected, ...(expected.others ?? [])].some((each) => isAs(seen, each))

const isAs = (seen: Result, expected: Expected): boolean =>
  seen.misrepresented === expected.misrepresented &&
  sameCounts(seen.counts, expected.counts) &&
  sameCounts(seen.said, expected.said) &&
  sameCounts(seen.remarks, expected.remarks)

export const sameCounts = <Of extends string>(a: Counts<Of>, b: Counts<Of>): boolean =>
  [...Object.keys(a), ...Object.keys(b)].every((of) => (a[of as Of] ?? 0) === (b[of as Of] ?? 0))

export const counted = (pods: readonly Fate[]): Result => ({
  counts: countsOf(pods.map(({ outcome }) => outcome)),
  said: countsOf(pods.flatMap(({ said }) => said ?? [])),
  misrepresented: pods.filter(({ misrepresented }) => misrepresented).length,
  remarks: countsOf(pods.flatMap(({ remarks }) => remarks)),
})

/** How often each occurs. */
export function countsOf(all: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const of of all) counts[of] = (counts[of] ?? 0) + 1
  return counts
}

/** `2 Serving, 1 CrashLoop`. */
export const textOf = ({ counts }: Pick<Result, 'counts'>): string => textOfCounts(outcomes, counts)

/** `1 Ready without serving`. */
export const remarksOf = (result: Pick<Result, 'remarks'>): string =>
  textOfCounts(remarks, result.remarks)

const textOfCounts = <Of extends string>(all: readonly Of[], counts: Counts<Of>): string =>
  all
    .filter((of) => (counts[of] ?? 0) > 0)
    .map((of) => `${counts[of]} ${of}`)
    .join(', ')
