/**
 * What the Go types of the messages say and generated.proto does not. It is kept in
 * src/api/codec/schema/go-types.txt, whose first lines say how to read it.
 */
import { inLines } from './lines.ts'
import { isMessage, isStruct, splitName, type Proto, type ProtoField } from './proto.ts'

/** How Go declares a field, in the marks of go-types.txt. */
export interface GoField {
  readonly holder: '' | '*' | '...'
  readonly omission: '' | '!' | '?'
}

/** What is not `usual`: of a message its fields by their names in JSON, or that it is a list. */
export type GoTypes = ReadonlyMap<string, ReadonlyMap<string, GoField> | 'list'>

/** What holds for a field that go-types.txt leaves out. */
export function usual(message: string, { label, type, name }: ProtoField): GoField {
  const isPart = ['metadata', 'spec', 'status'].includes(name)
  return {
    holder: label === 'optional' && isMessage(type) && !isPart ? '*' : '',
    omission: message.endsWith('List') && name === 'items' ? '!' : '',
  }
}

const marked = /^(?<holder>\*|\.\.\.)?(?<name>\w+)(?<omission>[!?])?$/

/** Throws where the text names what the proto does not have. */
export function readGoTypes(text: string, proto: Proto): GoTypes {
  const rows = text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\n +/g, ' ')
    .trim()
  const types = new Map<string, Map<string, GoField> | 'list'>()
  for (const [message = '', ...fields] of rows.split('\n').map((row) => row.split(' '))) {
    const known = proto.get(message)
    if (!known) throw new Error(`kubernetes.proto has no message ${message}`)
    if (fields.join() === '[]') {
      types.set(message, 'list')
      continue
    }
    const named = fields.map((field): [string, GoField] => {
      const { holder, name = '', omission } = marked.exec(field)?.groups ?? {}
      if (!known.some((field) => field.name === name))
        throw new Error(`kubernetes.proto has no field ${field} of ${message}`)
      return [
        name,
        {
          holder: holder === '*' || holder === '...' ? holder : '',
          omission: omission === '!' || omission === '?' ? omission : '',
        },
      ]
    })
    types.set(message, new Map(named))
  }
  return types
}

const head = `# What the Go types of the messages in kubernetes.proto say, and generated.proto does not:
#
#   *field     a pointer             field!  in JSON even when it is empty: no omitempty
#   ...field   an embedded struct    field?  not in JSON while it is empty, though a struct: omitzero
#   field      a value               []      the message is a list in Go, not a struct
#
# A field that is not named here is usual: a pointer if it is a message, but metadata, spec and status
# are values; omitempty, but the items of a List are not.
`

/**
 * go-types.txt, from the text of types.go of each package. Throws where that has not the fields of
 * the proto, in the same order: JSON has them in that of Go.
 */
export function goTypesText(proto: Proto, sources: ReadonlyMap<string, string>): string {
  const packages = new Map([...sources].map(([scope, source]) => [scope, readTypes(source)]))
  const typeOf = (fullName: string): GoStruct | 'list' | undefined => {
    const { scope, name } = splitName(fullName)
    return packages.get(scope)?.get(name)
  }
  const rows = [...proto].map(([message, fields]) => {
    const struct = typeOf(message)
    if (struct === 'list') return [message, '[]']
    if (!struct || [...struct.keys()].join() !== fields.map(({ number }) => number).join())
      throw new Error(`types.go and generated.proto differ in the fields of ${message}`)
    const unusual = fields.flatMap((field) => {
      const tagged = struct.get(field.number)
      if (!tagged) return []
      if (tagged.name !== '' && tagged.name !== field.name)
        throw new Error(`${field.name} of ${message} is ${tagged.name} in JSON`)
      const { holder, omission } = inGo(field, tagged, typeOf(field.type) === 'list')
      const other = usual(message, field)
      const isUsual = holder === other.holder && omission === other.omission
      return isUsual ? [] : [`${holder}${field.name}${omission}`]
    })
    return [message, ...unusual]
  })
  const lines = rows.filter((row) => row.length > 1).map((row) => inLines(row, '    '))
  return `${head}${lines.join('\n')}\n`
}

/** The fields of a struct by their numbers in protobuf. */
type GoStruct = ReadonlyMap<number, TaggedField>

interface TaggedField {
  readonly isPointer: boolean
  /** In JSON; empty for an embedded struct. */
  readonly name: string
  /** `omitempty`, `omitzero`, `inline`. */
  readonly options: readonly string[]
}

const declaration =
  /^type (?<type>\w+) (?<list>\[\])?|^\t(?:\w+ +)?(?<pointer>\*)?[\w.[\]*]+ +`json:"(?<json>[^"]*)".* protobuf:"\w+,(?<number>\d+),/gm

function readTypes(source: string): ReadonlyMap<string, GoStruct | 'list'> {
  const types = new Map<string, GoStruct | 'list'>()
  let fields = new Map<number, TaggedField>()
  for (const { groups = {} } of source.matchAll(declaration)) {
    const { type, list, pointer, json = '', number } = groups
    if (type !== undefined) types.set(type, list === undefined ? (fields = new Map()) : 'list')
    else {
      const [name = '', ...options] = json.split(',')
      fields.set(Number(number), { isPointer: pointer !== undefined, name, options })
    }
  }
  return types
}

function inGo(
  { label, type }: ProtoField,
  { isPointer, options }: TaggedField,
  isList: boolean,
): GoField {
  if (options.includes('inline')) return { holder: '...', omission: '' }
  const isOne = label === 'optional'
  // A list in a message of its own and bytes may be nil, as a pointer may.
  const holder = isPointer || (isOne && (isList || type === 'bytes')) ? '*' : ''
  // `omitempty` means nothing to a struct by value.
  if (isOne && isStruct(type) && holder === '')
    return { holder, omission: options.includes('omitzero') ? '?' : '' }
  const isOmitted = options.includes('omitempty') || options.includes('omitzero')
  return { holder, omission: isOmitted ? '' : '!' }
}
