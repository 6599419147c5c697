/** What a field holds; `message` has its schema beside it. */
export type FieldType =
  | 'string'
  | 'bytes'
  | 'bool'
  | 'int32'
  | 'int64'
  | 'double'
  | 'time'
  | 'microtime'
  | 'quantity'
  | 'intOrString'
  | 'message'
  | 'fieldsV1'

/** One field of a message: where it stands in protobuf, and when it is written there and in JSON. */
export interface Field {
  readonly number: number
  readonly type: FieldType
  /** The schema, for type `message` and no other. */
  readonly message?: () => MessageSchema
  readonly repeated?: true
  /** String keys; `type` is that of the values. */
  readonly map?: true
  /** Not a pointer in Go: protobuf has it even when it is empty. */
  readonly always?: true
  /** JSON has it even when it is empty (no `omitempty`). Structs that are no pointers are such without saying so. */
  readonly shown?: true
  /** An embedded struct: a message of its own in protobuf, its fields among those of the parent in JSON. */
  readonly inline?: true
}

/** The fields of a message by their names in JSON. */
export interface MessageSchema {
  /** As Go names the type: `PodSpec`. */
  readonly name: string
  readonly fields: Readonly<Record<string, Field>>
}

const scalar =
  (type: FieldType) =>
  (number: number): Field => ({ number, type, always: true })

// Plain fields are what Go holds by value; `optional`, `list` and `map` say otherwise.
export const string = scalar('string')
export const bool = scalar('bool')
export const int32 = scalar('int32')
export const int64 = scalar('int64')
export const double = scalar('double')
export const time = scalar('time')
export const microtime = scalar('microtime')
export const quantity = scalar('quantity')
export const intOrString = scalar('intOrString')

/** Bytes and raw JSON know absence in Go without being pointers. */
export const bytes = (number: number): Field => ({ number, type: 'bytes' })
export const fieldsV1 = (number: number): Field => ({ number, type: 'fieldsV1' })

/** A field that holds a message. */
export const of = (number: number, schema: MessageSchema): Field => ({
  number,
  type: 'message',
  message: () => schema,
  always: true,
})

const held = ({ number, type, message }: Field): Field => ({
  number,
  type,
  ...(message && { message }),
})

/** A pointer: written only when it is set. */
export const optional = (field: Field): Field => held(field)

export const list = (field: Field): Field => ({ ...held(field), repeated: true })

export const map = (field: Field): Field => ({ ...held(field), map: true })

/** Present in JSON even when empty. */
export const shown = (field: Field): Field => ({ ...field, shown: true })

/** An embedded struct; the name it is entered under occurs in no JSON. */
export const inline = (number: number, schema: MessageSchema): Field => ({
  ...of(number, schema),
  inline: true,
})

export const message = (name: string, fields: Readonly<Record<string, Field>>): MessageSchema => ({
  name,
  fields,
})

/** The list of a kind: its metadata and its items. */
export const listOf = (meta: MessageSchema, item: MessageSchema): MessageSchema =>
  message(`${item.name}List`, { metadata: of(1, meta), items: shown(list(of(2, item))) })
