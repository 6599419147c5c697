/** How grave: what will not work, what may not, what is good to know. SARIF's words. */
export type Level = 'error' | 'warning' | 'note'

/** Where in an object: the names of members and the numbers of list entries on the way there. */
export type Path = readonly (string | number)[]

/** What a rule says about one place of one object. */
export interface Finding {
  /** The id of the rule. */
  readonly rule: string
  readonly level: Level
  /** What is so and what to do, as a sentence without its full stop. */
  readonly message: string
  readonly path: Path
}
