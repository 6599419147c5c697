/**
 * What becomes of a pod, by what happens: it answers with its own name on its port; it runs and
 * does not; its container ends again and again; its kubelet refuses it; it is scheduled and its
 * sandbox gets no network; it is not scheduled.
 */
export const outcomes = [
  'Serving',
  'NotServing',
  'CrashLoop',
  'Failed',
  'Stuck',
  'Unschedulable',
] as const

export type Outcome = (typeof outcomes)[number]

/** The outcome of one pod, and what the API reports. */
export interface Fate {
  readonly outcome: Outcome
  readonly said: ReportedState
  /** Whether it runs, and on another network than the API says. */
  readonly misrepresented: boolean
}

/** The part of a pod that API clients see: its phase, and the network that it requests. */
export type ReportedState = `${'Pending' | 'Running' | 'Failed'} on ${Network}`

type Network = 'the pod network' | "the host's network"

export const networkOf = (hostNetwork: boolean): Network =>
  hostNetwork ? "the host's network" : 'the pod network'

/** How many pods came to what, and what the API says of those that run against how they run. */
export interface Result {
  readonly counts: Readonly<Partial<Record<Outcome, number>>>
  readonly said: Readonly<Partial<Record<ReportedState, number>>>
  /** Pods that run on another network than the API says. */
  readonly misrepresented: number
}

export const sameResult = (a: Result, b: Result): boolean =>
  a.misrepresented === b.misrepresented && same(a.counts, b.counts) && same(a.said, b.said)

type Counts<Of extends string> = Readonly<Partial<Record<Of, number>>>

const same = <Of extends string>(a: Counts<Of>, b: Counts<Of>): boolean =>
  [...Object.keys(a), ...Object.keys(b)].every((of) => (a[of as Of] ?? 0) === (b[of as Of] ?? 0))

export const counted = (pods: readonly Fate[]): Result => ({
  counts: countsOf(pods.map(({ outcome }) => outcome)),
  said: countsOf(pods.map(({ said }) => said)),
  misrepresented: pods.filter(({ misrepresented }) => misrepresented).length,
})

/** How often each occurs. */
export function countsOf(all: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const of of all) counts[of] = (counts[of] ?? 0) + 1
  return counts
}

/** `2 Serving, 1 CrashLoop`. */
export const textOf = ({ counts }: Pick<Result, 'counts'>): string =>
  outcomes
    .filter((outcome) => (counts[outcome] ?? 0) > 0)
    .map((outcome) => `${counts[outcome]} ${outcome}`)
    .join(', ')
