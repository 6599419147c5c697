import type { FilterDefinition } from './filter.ts'
import type { InputName, Inputs } from './inputs.ts'

/** The state on which a chain's decisions depend besides the object, as text to compare. */
export interface ChainState {
  /** The filters in order, each with its revision, and their inputs that are known, as JSON. */
  readonly text: string
  /** Whether any of the filters acts that may have decided otherwise before. */
  readonly acts: boolean
}

/** The state of requests that no filter matches. */
export const unfiltered: ChainState = { text: '[]', acts: false }

/** Whether both states decide the same for every object. */
export const decideAlike = (a: ChainState, b: ChainState): boolean =>
  (!a.acts && !b.acts) || a.text === b.text

export function chainState(
  definitions: readonly FilterDefinition[],
  inputs: Inputs,
  acts: boolean,
): ChainState {
  const needs = new Set(definitions.flatMap((definition) => definition.needs))
  const chain = definitions.map(({ name, revision = '' }) => [name, revision])
  const known = Object.fromEntries([...needs].map((need) => [need, inputs[need]]))
  return { acts, text: JSON.stringify([chain, known]) }
}

/** The awaited inputs that are still unknown. */
export function missingInputs(
  definitions: readonly FilterDefinition[],
  inputs: Inputs,
): readonly InputName[] {
  const awaited = definitions.flatMap(({ awaits = [] }) => awaits)
  const isUnknown = (name: InputName): boolean =>
    inputs[name] === undefined && !inputs.untold?.includes(name)
  return [...new Set(awaited)].filter(isUnknown)
}
