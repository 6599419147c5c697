import type { JsonObject } from '../../api/kube/json.ts'
import type { Context } from './context.ts'
import type { Level, Path } from './finding.ts'
import type { PodSubject } from './pod.ts'

/**
 * What a rule found: where, and in which words. Its level is the rule's own unless it says
 * otherwise.
 */
export interface RuleFinding {
  readonly path: Path
  readonly message: string
  readonly level?: Level
}

interface RuleDescription {
  readonly id: string
  /** Of what it finds, as a rule. */
  readonly level: Level
  /** What it looks for, in a few words. */
  readonly title: string
  /** Why that matters: what happens otherwise. */
  readonly reason: string
  /** Where it comes from. */
  readonly document: string
}

/** A rule about pods, and about templates of pods. */
export interface PodRule extends RuleDescription {
  readonly about: 'pod'
  readonly check: (pod: PodSubject, context: Context) => Iterable<RuleFinding>
}

/** A rule about a whole object of any kind; it looks for itself whether the object concerns it. */
export interface ObjectRule extends RuleDescription {
  readonly about: 'object'
  readonly check: (object: JsonObject, context: Context) => Iterable<RuleFinding>
}

export type Rule = PodRule | ObjectRule
