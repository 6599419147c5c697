import { option, type Group, type Option } from './option.ts'
import { optional, orEmpty, type ValueType } from './value.ts'

/**
 * A flag that is accepted without effect, so that scripts, unit files and manifests keep working,
 * with a warning that says why. `false` and an empty value need nothing that is missing here.
 */
export const withoutEffect =
  (group: Group) =>
  <T>(type: ValueType<T, unknown>, help: string, why: string): Option<T | undefined> =>
    option({
      type: orEmpty(optional(type)),
      group,
      help,
      warningFor: (value) => (value === undefined || value === false ? undefined : why),
    })

const accepted = withoutEffect('Accepted from earlier releases, without effect')

/** A flag that an earlier release had: accepted for one release. `instead` takes its place. */
export const former = <T>(type: ValueType<T, unknown>, help: string, instead: string) =>
  accepted(type, help, `has no effect any more: ${instead}`)
