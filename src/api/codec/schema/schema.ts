import { apiVersionOf, parseApiVersion, type GVK } from '../../kube/gvk.ts'
import { deleteOptions, kinds } from './kinds.ts'
import { messages } from './messages.ts'
import { readMessage, type MessageSchema } from './notation.ts'

export type { Field, FieldType, MessageSchema } from './notation.ts'

const read = new Map<string, MessageSchema>()

/** `core.v1.Pod`: parsed at first use, and the same instance from then on. */
function messageNamed(fullName: string): MessageSchema {
  const known = read.get(fullName)
  if (known) return known
  const [scope, name] = splitName(fullName)
  const text = messages[scope]?.[name]
  if (text === undefined) throw new Error(`messages.ts lacks ${fullName}`)
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

/** The kinds of a resource that have a schema, in all versions. */
export const kindsOf = (group: string, resource: string): readonly GVK[] =>
  Object.entries(kinds).flatMap(([apiVersion, names]) => {
    const groupVersion = parseApiVersion(apiVersion)
    if (groupVersion.group !== group) return []
    return names
      .filter((fullName) => resourceOf(splitName(fullName)[1]) === resource)
      .map(messageNamed)
      .filter(({ fields }) => 'metadata' in fields)
      .map(({ name }) => ({ ...groupVersion, kind: name }))
  })

/**
 * As apimachinery guesses it (pkg/api/meta/restmapper.go, UnsafeGuessKindToResource), which is
 * right for all kinds here.
 */
function resourceOf(kind: string): string {
  const word = kind.toLowerCase()
  if (word === 'endpoints') return word
  if (word.endsWith('s')) return `${word}es`
  return word.endsWith('y') ? `${word.slice(0, -1)}ies` : `${word}s`
}
