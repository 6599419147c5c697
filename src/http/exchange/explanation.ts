/** Why the hub gave this answer. Without secrets: it is logged, and shown to root. */
export interface Explanation {
  /** Why its source has answered, in words. */
  readonly reason?: string
  /** The API server that answered. */
  readonly upstream?: string
  /** How filters changed it; absent where none acts. */
  readonly filtered?: Filtered
}

/** The filters that act on an answer, and what they have changed so far: a list is read as sent. */
export interface Filtered {
  readonly filters: readonly string[]
  /** Absent for a watch, whose events several clients share. */
  readonly objects?: { edited: number; withheld: number }
}

/** An answer, as far as it is explained. */
interface Explained {
  readonly explanation?: Explanation
}

/** The same answer with a reason; a reason that it has already is more specific, and follows. */
export function because<R extends Explained>(reply: R, reason: string): R {
  const { explanation } = reply
  const special = explanation?.reason
  const both = special === undefined ? reason : `${reason}: ${special}`
  return { ...reply, explanation: { ...explanation, reason: both } }
}

/** The same answer, with the changes that filters make. */
export const filteredBy = <R extends Explained>(reply: R, filtered: Filtered): R => ({
  ...reply,
  explanation: { ...reply.explanation, filtered },
})
