import { unknownInputs, type Inputs } from '../../src/hub/filter/inputs.ts'

/** What filters know of a node of which nothing is known yet, but for what is given. */
export const inputsOf = (known: Partial<Inputs> = {}): Inputs => ({
  ...unknownInputs,
  nodeName: 'node-1',
  ...known,
})
