import type { FilterDefinition } from './filter.ts'
import type { InputName, Inputs } from './inputs.ts'

/**
 * What a look depends on besides the object: plain text, which means the same to the next process.
 */
export interface ChainState {
  /** Which filters, in which order, of which code. */
  readonly chain: string
  /** What they were given of what the hub knows, as JSON; what was never known is left out. */
  readonly inputs: string
  /** Whether any of them had something to do. */
  readonly acts: boolean
}

/** What no filter stands for. */
export const unfiltered: ChainState = { chain: '[]', inputs: '{}', acts: false }

/** Whether both make the same of every object, as their names tell. */
export const areSame = (a: ChainState, b: ChainState): boolean =>
  a.chain === b.chain && a.inputs === b.inputs

/** What a client that was shown objects under the one is owed now that the other is in force. */
export function owed(before: ChainState, now: ChainState): 'nothing' | 'difference' | 'list' {
  if (areSame(before, now) || (!before.acts && !now.acts)) return 'nothing'
  return before.chain === now.chain ? 'difference' : 'list'
}

export function chainState(
  definitions: readonly FilterDefinition[],
  inputs: Inputs,
  acts: boolean,
): ChainState {
  const needs = new Set(definitions.flatMap((definition) => definition.needs))
  const known = [...needs].filter((need) => inputs[need] !== undefined)
  return {
    acts,
    chain: JSON.stringify(definitions.map(({ name, revision = '' }) => [name, revision])),
    inputs: canonical(Object.fromEntries(known.map((need) => [need, inputs[need]]))),
  }
}

/** The inputs that a state was made of. What is no state's gives none. */
export function inputsIn({ inputs }: ChainState): Partial<Inputs> {
  try {
    return JSON.parse(inputs) as Partial<Inputs>
  } catch {
    return {}
  }
}

/** What has never been known and is waited for. */
export function unknownOf(
  definitions: readonly FilterDefinition[],
  inputs: Inputs,
): readonly InputName[] {
  const awaited = definitions.flatMap(({ awaits = [] }) => awaits)
  const isUnknown = (name: InputName): boolean =>
    inputs[name] === undefined && !inputs.untold?.includes(name)
  return [...new Set(awaited)].filter(isUnknown)
}

/** The same text for the same data, in whatever order its members were written. */
const canonical = (data: unknown): string =>
  JSON.stringify(data, (_key, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  )
