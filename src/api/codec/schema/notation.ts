/** The type of a field; `message` has its schema in `Field.message`. */
export type FieldType = (typeof scalars)[number] | 'message'

const scalars = [
  'string',
  'bytes',
  'bool',
  'int32',
  'int64',
  'time',
  'microtime',
  'quantity',
  'intOrString',
  'fieldsV1',
] as const

/** One field of a message: its number in protobuf, and when protobuf and JSON write it. */
export interface Field {
  readonly number: number
  readonly type: FieldType
  /** The schema, for type `message` and no other. */
  readonly message?: () => MessageSchema
  readonly repeated?: true
  /** A map with string keys; `type` is the type of the values. */
  readonly map?: true
  /** Not a pointer in Go: protobuf has it even if it is empty. */
  readonly always?: true
  /**
   * JSON has it even if it is empty, as `null` if the type has no empty value: no `omitempty`, or a
   * struct by value without `omitzero`.
   */
  readonly shown?: true
  /**
   * An embedded struct: a message of its own in protobuf; in JSON its fields are members of the
   * parent.
   */
  readonly inline?: true
}

/** The fields of a message by their names in JSON. */
export interface MessageSchema {
  /** As Go names the type: `PodSpec`. */
  readonly name: string
  /** In the order of the API server's JSON, which differs from the numbers. */
  readonly fields: Readonly<Record<string, Field>>
  /** A list that protobuf wraps in a message; in JSON it is the list of its only field. */
  readonly wraps?: true
}

const field = /^(?:(\.\.\.)?(\w+)(!)? )?(\*|\[\]|map\[string\])?([\w.]+) (\d+)$/

/**
 * A message as `messages.json` has it, its fields written like `containers! []Container 2`:
 *
 * - `!` after the name: `shown`; `...` before it: `inline`, and the name occurs in no JSON.
 * - `[]` before the type: `repeated`; `map[string]`: `map`; `*`: a pointer. All else is `always`.
 * - The field of a message that wraps a list has no name: `[]string 1`.
 *
 * `schemaOf` is called for the message of a field when that is first needed.
 */
export function readMessage(
  name: string,
  text: string,
  schemaOf: (type: string) => MessageSchema,
): MessageSchema {
  const fields = text.split(/,\s*/).map((written): readonly [string, Field] => {
    const [, inline, key = 'items', shown, holder, type = '', number] = field.exec(written) ?? []
    return [
      key,
      {
        number: Number(number),
        ...heldBy(type, schemaOf),
        ...(holder === undefined && { always: true }),
        ...(holder === '[]' && { repeated: true }),
        ...(holder === 'map[string]' && { map: true }),
        ...(shown && { shown: true }),
        ...(inline && { inline: true }),
      },
    ]
  })
  return { name, fields: Object.fromEntries(fields), ...(text.startsWith('[]') && { wraps: true }) }
}

function heldBy(
  type: string,
  schemaOf: (type: string) => MessageSchema,
): Pick<Field, 'type' | 'message'> {
  const scalar = scalars.find((scalar) => scalar === type)
  if (scalar) return { type: scalar }
  let schema: MessageSchema | undefined
  return { type: 'message', message: () => (schema ??= schemaOf(type)) }
}
