import type { JsonObject } from '../../api/kube/json.ts'
import type { Context } from './context.ts'
import type { Level, Path } from './finding.ts'
import type { PodSubject } from './pod.ts'

/** A finding of a rule. Its level is the rule's own unless it has another. */
export interface RuleFinding {
  readonly path: Path
  readonly message: string
  readonly level?: Level
}

export interface Rule {
  readonly id: string
  /** Of what it finds, as a rule. */
  readonly level: Level
  /** The problem that it finds, in a few words. */
  readonly title: string
  /** Why that matters: what happens otherwise. */
  readonly reason: string
  /** Where it comes from. */
  readonly document: string
  /** Checks a pod, or a template of pods. */
  readonly checkPod?: (pod: PodSubject, context: Context) => Iterable<RuleFinding>
  /** Checks a whole object of any kind; the rule checks the kind itself. */
  readonly checkObject?: (object: JsonObject, context: Context) => Iterable<RuleFinding>
}
