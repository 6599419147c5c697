import { option, type Option } from './option.ts'
import { optional, type ValueType } from './value.ts'

/**
 * A flag that an earlier release had: accepted for one release, so that scripts, unit files and
 * manifests keep working, with a warning that says what takes its place.
 */
export const former = <T>(
  type: ValueType<T, unknown>,
  help: string,
  instead: string,
): Option<T | undefined> =>
  option({
    type: optional(type),
    group: 'Accepted from earlier releases, without effect',
    help,
    warningFor: () => `has no effect any more: ${instead}`,
  })
