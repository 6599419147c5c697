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

export const gracePeriod = {
  type: is.duration,
  help: 'How long requests in flight may take at a graceful stop. 4 s later the process exits with a code other than 0, or 5 s later if its log is not read; one whose main thread is blocked is killed 7 s later, or by the kubelet if it is the first process of a container.',
  default: 10_000,
  defaultShown: '10s',
} as const
