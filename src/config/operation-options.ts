import { option } from './option.ts'
import * as is from './value.ts'

// Options of every long-running command.

export const configFile = option({
  type: is.text('FILE'),
  group: 'Operation',
  help: 'A file in YAML or JSON whose keys are these names without the leading dashes. Flags and environment take precedence.',
})

export const logLevel = is.oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal'])

/** An option that names a file, which must be readable. */
export const readableFile = {
  type: is.text('FILE'),
  file: true,
} as const
