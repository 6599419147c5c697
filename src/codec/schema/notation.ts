/** What a field holds; `message` has its schema beside it. */
export type FieldType =
  | 'string'
  | 'bytes'
  | 'bool'
  | 'int32'
  | 'int64'
  | 'time'
  | 'microtime'
  | 'quantity'
  | 'intOrString'
  | 'message'
  | 'fieldsV1'

/**
 * One field of a message: where it stands in protobuf, and when it is written there and in JSON.
 */
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
  /**
   * JSON has it even when it is empty, as `null` where nothing better is empty: no `omitempty`, or
   * a struct by value, which knows no emptiness unless it says `omitzero`.
   */
  readonly shown?: true
  /**
   * An embedded struct: a message of its own in protobuf, its fields among those of the parent in
   * JSON.
   */
  readonly inline?: true
}

/** The fields of a message by their names in JSON. */
export interface MessageSchema {
  /** As Go names the type: `PodSpec`. */
  readonly name: string
  /** In the order of the API server's JSON, which is not that of the numbers. */
  readonly fields: Readonly<Record<string, Field>>
  /** A list that protobuf can only hold in a message: in JSON it is the list of its one field. */
  readonly wraps?: true
}

const scalar =
  (type: FieldType) =>
  (number: number): Field => ({ number, type, always: true })

// Plain fields are what Go holds by value; `optional`, `list` and `map` say otherwise.
export const string = scalar('string')
export const bool = scalar('bool')
export const int32 = scalar('int32')
export const int64 = scalar('int64')

const struct =
  (type: FieldType) =>
  (number: number): Field => ({ number, type, always: true, shown: true })

// Structs in Go, though JSON has a string or number for them.
export const time = struct('time')
export const microtime = struct('microtime')
export const quantity = struct('quantity')
export const intOrString = struct('intOrString')

/** Bytes and raw JSON know absence in Go without being pointers. */
export const bytes = (number: number): Field => ({ number, type: 'bytes' })
export const fieldsV1 = (number: number): Field => ({ number, type: 'fieldsV1' })

/** A field that holds a message. */
export const of = (number: number, schema: MessageSchema): Field => ({
  ...struct('message')(number),
  message: () => schema,
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

/** `omitzero`: absent from JSON while it is empty, and yet in protobuf. */
export const unlessZero = (field: Field): Field => ({ ...held(field), always: true })

/** An embedded struct; the name it is entered under occurs in no JSON. */
export const inline = (number: number, schema: MessageSchema): Field => ({
  ...of(number, schema),
  inline: true,
})

export const message = (name: string, fields: Readonly<Record<string, Field>>): MessageSchema => ({
  name,
  fields,
})

/** A named list type, such as the values of an `extra`. */
export const wrapped = (name: string, item: (number: number) => Field): MessageSchema => ({
  name,
  fields: { items: list(item(1)) },
  wraps: true,
})

/** The list of a kind: its metadata and its items. */
export const listOf = (meta: MessageSchema, item: MessageSchema): MessageSchema =>
  message(`${item.name}List`, { metadata: of(1, meta), items: shown(list(of(2, item))) })
