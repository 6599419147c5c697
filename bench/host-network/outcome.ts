/**
 * What becomes of a pod, by what happens: it answers with its own name on its port; it runs and does not; its container ends again and
 * again; its kubelet refuses it; it is scheduled and its sandbox gets no network; it is not scheduled.
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

/** How many pods came to what, and what the API says of those that run against how they run. */
export interface Result {
  readonly counts: Readonly<Partial<Record<Outcome, number>>>
  /** Pods that run on another network than the API says. */
  readonly misrepresented: number
}

export const sameResult = (a: Result, b: Result): boolean =>
  a.misrepresented === b.misrepresented &&
  outcomes.every((outcome) => (a.counts[outcome] ?? 0) === (b.counts[outcome] ?? 0))

export function counted(pods: readonly { outcome: Outcome; misrepresented: boolean }[]): Result {
  const counts: Partial<Record<Outcome, number>> = {}
  for (const { outcome } of pods) counts[outcome] = (counts[outcome] ?? 0) + 1
  return { counts, misrepresented: pods.filter(({ misrepresented }) => misrepresented).length }
}

/** `2 Serving, 1 CrashLoop`. */
export const textOf = ({ counts }: Result): string =>
  outcomes
    .filter((outcome) => (counts[outcome] ?? 0) > 0)
    .map((outcome) => `${counts[outcome]} ${outcome}`)
    .join(', ')
