import type { FilterDefinition } from '../../src/hub/filter/filter.ts'
import { Filters } from '../../src/hub/filter/filters.ts'
import { unknownInputs, type Inputs } from '../../src/hub/filter/inputs.ts'

/** What filters know of a node of which nothing is known yet, but for what is given. */
export const inputsOf = (known: Partial<Inputs> = {}): Inputs => ({
  ...unknownInputs,
  nodeName: 'node-1',
  ...known,
})

/** Filters with these inputs; `onFailure` is called for each object at which one fails. */
export const filtersOf = (
  definitions: readonly FilterDefinition[],
  known?: Partial<Inputs>,
  onFailure: (filter: string, cause: unknown) => void = () => undefined,
): Filters =>
  new Filters(definitions, inputsOf(known), {
    warn: () => undefined,
    onDecision: (filter, decision, cause) => {
      if (decision === 'failed') onFailure(filter, cause)
    },
  })
