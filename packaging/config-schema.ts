import { isAcceptedOnly, type Option, type OptionTable } from '../src/config/option.ts'
import { options } from '../src/config/options.ts'
import type { ValueType } from '../src/config/value.ts'

/** Where packages install it; the first line of a file names it to editors. */
export const configSchemaFile = '/opt/nodehub/config.schema.json'

/** They have no place in the file itself. */
const outsideOfFile = new Set(['config', 'version'])

const number = /^(?:DURATION|SIZE)$/

function schemaOf({ bare, range, words, placeholder, adds }: ValueType<unknown, unknown>): object {
  if (bare !== undefined) return { type: 'boolean' }
  if (range) return { type: 'integer', minimum: range[0], maximum: range[1] }
  if (adds !== undefined)
    return { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] }
  if (words) return { enum: words }
  return number.test(placeholder) ? { type: ['string', 'integer'] } : { type: 'string' }
}

function propertiesOf(name: string, option: Option<unknown>): (readonly [string, object])[] {
  const schema = { ...schemaOf(option.type), description: option.help }
  const former = { ...schema, deprecated: true }
  return [
    [name, isAcceptedOnly(option.group) ? former : schema],
    ...(option.aliases ?? []).map((alias) => [alias, former] as const),
  ]
}

/** The JSON Schema of the file of `--config`, for editors. */
export const configSchema = (table: OptionTable = options): object => ({
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'The configuration file of nodehub start',
  type: 'object',
  properties: Object.fromEntries(
    Object.entries(table)
      .filter(([name]) => !outsideOfFile.has(name))
      .flatMap(([name, option]) => propertiesOf(name, option)),
  ),
  additionalProperties: false,
})
