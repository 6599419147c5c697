/** Reads the messages of Kubernetes' generated.proto files. */

export interface ProtoField {
  readonly label: 'optional' | 'repeated' | 'map'
  /** A scalar, or the full name of a message: `core.v1.Container`. Of a map that of its values. */
  readonly type: string
  /** In JSON. */
  readonly name: string
  readonly number: number
}

/** The fields of messages by the messages' full names, in the order of the text. */
export type Proto = ReadonlyMap<string, readonly ProtoField[]>

/** What JSON has another form for than for a message. */
const special: Readonly<Record<string, string>> = {
  'meta.v1.Time': 'time',
  'meta.v1.MicroTime': 'microtime',
  'meta.v1.FieldsV1': 'fieldsV1',
  'api.resource.Quantity': 'quantity',
  'util.intstr.IntOrString': 'intOrString',
}

export const isMessage = (type: string): boolean => type.includes('.')

/** Structs by value have no empty form in Go that `omitempty` would know. */
export const isStruct = (type: string): boolean =>
  isMessage(type) || ['time', 'microtime', 'quantity', 'intOrString'].includes(type)

const declared =
  /^(?:package (?<scope>\S+);|message (?<message>\w+)| {2}(?:(?<label>optional|repeated) (?<type>\S+)|map<string, (?<values>\S+)>) (?<name>\w+) = (?<number>\d+);)/gm

export function readProto(text: string): Proto {
  const proto = new Map<string, ProtoField[]>()
  let scope = ''
  let fields: ProtoField[] = []
  for (const { groups = {} } of text.matchAll(declared)) {
    const { message, label, type, values, name = '', number } = groups
    if (groups['scope'] !== undefined) scope = shortened(groups['scope'])
    else if (message !== undefined) proto.set(`${scope}.${message}`, (fields = []))
    else
      fields.push({
        label: label === 'optional' || label === 'repeated' ? label : 'map',
        type: fullType(type ?? values ?? '', scope),
        // The one name that JSON writes otherwise.
        name: name === 'uID' ? 'uid' : name,
        number: Number(number),
      })
  }
  return proto
}

function fullType(type: string, scope: string): string {
  if (/^[a-z]/.test(type)) return type
  const fullName = type.startsWith('.') ? shortened(type) : `${scope}.${type}`
  return special[fullName] ?? fullName
}

/** `k8s.io.api.core.v1` is `core.v1` here. */
const shortened = (name: string): string =>
  name.replace(/^\.?k8s\.io\.(?:api|apimachinery\.pkg(?:\.apis)?)\./, '')

/** Package and name of a message: `core.v1` and `Pod`. */
export function splitName(fullName: string): { readonly scope: string; readonly name: string } {
  const dot = fullName.lastIndexOf('.')
  return { scope: fullName.slice(0, dot), name: fullName.slice(dot + 1) }
}

/** `names` and the messages that they hold, all without comments, from the texts of packages. */
export function onlyNeeded(names: readonly string[], texts: readonly string[]): string {
  const proto = readProto(texts.join('\n'))
  const needed = new Set<string>()
  const add = (fullName: string): void => {
    if (needed.has(fullName)) return
    needed.add(fullName)
    for (const { type } of proto.get(fullName) ?? []) if (isMessage(type)) add(type)
  }
  names.forEach(add)
  return texts
    .map((text) => {
      const scope = /^package (\S+);/m.exec(text)?.[1] ?? ''
      const messages = [...text.matchAll(/^message (\w+) \{\n.*?^\}\n/gms)]
        .filter(([, name]) => needed.has(`${shortened(scope)}.${name}`))
        .map(([message]) => message.replaceAll(/^ *(?:\/\/.*)?\n/gm, ''))
      return `package ${scope};\n${messages.join('')}`
    })
    .join('\n')
}
