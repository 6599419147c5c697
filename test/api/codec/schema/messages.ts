/** Makes src/api/codec/schema/messages.json of Kubernetes' own messages and Go types. */
import { readFileSync } from 'node:fs'
import { deleteOptions, kinds } from '../../../../src/api/codec/schema/kinds.ts'
import { readGoTypes, usual, type GoTypes } from './go-types.ts'
import { isMessage, isStruct, readProto, splitName, type Proto, type ProtoField } from './proto.ts'

export const files = {
  proto: 'src/api/codec/schema/kubernetes.proto',
  goTypes: 'src/api/codec/schema/go-types.txt',
  messages: 'src/api/codec/schema/messages.json',
}

/** The messages that are needed for themselves. */
export const neededNames: readonly string[] = [...Object.values(kinds).flat(), deleteOptions]

/** The messages that are needed, and all that they hold, by package, as messages.json has them. */
export function messagesSource(): string {
  const proto = readProto(readFileSync(files.proto, 'utf8'))
  const goTypes = readGoTypes(readFileSync(files.goTypes, 'utf8'), proto)
  const needed = neededMessages(proto, goTypes)
  const names = [...proto.keys()].filter((name) => needed.has(name)).map(splitName)
  const packages = [...Map.groupBy(names, ({ scope }) => scope)].map(([scope, members]) => {
    const entries = members.map(({ name }) => {
      const fields = needed.get(`${scope}.${name}`) ?? []
      return [name, fields.map((field) => field.replace(`${scope}.`, '')).join(', ')]
    })
    return [scope, Object.fromEntries(entries) as unknown]
  })
  return `${JSON.stringify(Object.fromEntries(packages), undefined, 2)}\n`
}

/**
 * The fields of each message in the notation of `readMessage`, with full names of messages. What
 * two packages have alike is that of the first: filters tell by the schema whether two versions of
 * a kind have the same fields.
 */
function neededMessages(proto: Proto, goTypes: GoTypes): ReadonlyMap<string, readonly string[]> {
  const needed = new Map<string, readonly string[]>()
  const firsts = new Map<string, string>()
  const add = (fullName: string): string => {
    if (needed.has(fullName)) return fullName
    const fields = proto.get(fullName)
    if (!fields) throw new Error(`kubernetes.proto lacks ${fullName}`)
    const written = fields.map((field) =>
      notation(
        fullName,
        isMessage(field.type) ? { ...field, type: add(field.type) } : field,
        goTypes,
      ),
    )
    const like = `${splitName(fullName).name}: ${written.join()}`
    const first = firsts.get(like)
    if (first !== undefined) return first
    firsts.set(like, fullName)
    needed.set(fullName, written)
    return fullName
  }
  neededNames.forEach(add)
  return needed
}

function notation(message: string, field: ProtoField, goTypes: GoTypes): string {
  const { label, type, name, number } = field
  const goType = goTypes.get(message)
  if (goType === 'list') return `[]${type} ${number}`
  const { holder, omission } = goType?.get(name) ?? usual(message, field)
  const isShown =
    omission === '!' ||
    (label === 'optional' && isStruct(type) && holder !== '*' && omission === '')
  const held = { repeated: '[]', map: 'map[string]', optional: holder === '*' ? '*' : '' }[label]
  return `${holder === '...' ? holder : ''}${name}${isShown ? '!' : ''} ${held}${type} ${number}`
}
