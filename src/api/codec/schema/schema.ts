import { apiVersionOf, type GVK } from '../../kube/gvk.ts'
import { deleteOptions, kinds } from './kinds.ts'
import written from './messages.json' with { type: 'json' }
import { readMessage, type MessageSchema } from './notation.ts'

export type { Field, FieldType, MessageSchema } from './notation.ts'

/** Made of kubernetes.proto and go-types.txt by `node test/write-schema.ts`. */
const messages: Readonly<Record<string, Readonly<Record<string, string>>>> = written

const read = new Map<string, MessageSchema>()

/** `core.v1.Pod`: parsed at first use, and the same instance from then on. */
function messageNamed(fullName: string): MessageSchema {
  const known = read.get(fullName)
  if (known) return known
  const [scope, name] = splitName(fullName)
  const text = messages[scope]?.[name]
  if (text === undefined) throw new Error(`messages.json lacks ${fullName}`)
  const schema = readMessage(name, text, (type) =>
    messageNamed(type.includes('.') ? type : `${scope}.${type}`),
  )
  read.set(fullName, schema)
  return schema
}

function splitName(fullName: string): [scope: string, name: string] {
  const dot = fullName.lastIndexOf('.')
  return [fullName.slice(0, dot), fullName.slice(dot + 1)]
}

const fullNames = new Map(
  Object.entries(kinds).flatMap(([apiVersion, names]) =>
    names.map((name) => [`${apiVersion} ${splitName(name)[1]}`, name] as const),
  ),
)

/** The schema of a Status. */
export const statusSchema = messageNamed('meta.v1.Status')

/** The schema of metadata, which all kinds share. */
export const partialObjectMetadata = messageNamed('meta.v1.PartialObjectMetadata')

/** The message of a kind or of its list; `undefined` for kinds without a schema. */
export function schemaOf(gvk: GVK): MessageSchema | undefined {
  if (gvk.kind === 'DeleteOptions') return messageNamed(deleteOptions)
  const fullName = fullNames.get(`${apiVersionOf(gvk)} ${gvk.kind}`)
  return fullName === undefined ? undefined : messageNamed(fullName)
}
