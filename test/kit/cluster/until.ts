import { setTimeout as sleep } from 'node:timers/promises'

export interface Patience {
  readonly seconds?: number
  /** Said when time is up: what was last seen. */
  readonly describe?: () => unknown
}

/**
 * Asks `probe` again and again until it answers something else than `undefined` or `false`. A probe that throws has not answered; the
 * last failure is the cause of the error that ends the wait.
 */
export async function until<Answer>(
  what: string,
  probe: () => Promise<Answer | undefined | false> | Answer | undefined | false,
  { seconds = 60, describe }: Patience = {},
): Promise<Answer> {
  const end = performance.now() + seconds * 1000
  let cause: unknown
  while (performance.now() < end) {
    try {
      const answer = await probe()
      if (answer !== undefined && answer !== false) return answer
    } catch (error) {
      if (error instanceof Hopeless) throw error
      cause = error
    }
    await sleep(50)
  }
  const seen = describe ? `; last seen: ${JSON.stringify(describe())}` : ''
  throw new Error(`waited ${seconds} s for ${what}${seen}`, { cause })
}

/** Thrown by a probe that will never succeed: the wait ends at once. */
export class Hopeless extends Error {}
