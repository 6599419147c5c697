import { option } from './option.ts'
import * as is from './value.ts'

// What is the same for every command that goes on running.

export const configFile = option({
  type: is.optional(is.text('FILE')),
  group: 'Operation',
  help: 'A file in YAML or JSON whose keys are these names without dashes in front. Flags and environment come before it.',
  default: undefined,
})

export const logLevel = is.oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal'])
