/** The severity: it will not work, it may not work, good to know. */
export type Level = 'error' | 'warning' | 'note'

/** Where in an object: the names of members and the numbers of list entries on the way there. */
export type Path = readonly (string | number)[]

/** A finding of a rule at one path of one object. */
export interface Finding {
  /** The id of the rule. */
  readonly rule: string
  readonly level: Level
  /** The problem and its remedy, as a sentence without its full stop. */
  readonly message: string
  readonly path: Path
}
