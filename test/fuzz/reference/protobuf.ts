import { readFields } from '../../kit/wire-fields.ts'

/** A list in protobuf read at once, by the tests' own reader of fields. */
export interface ProtobufList {
  readonly kind: string
  readonly resourceVersion: string
  readonly items: readonly Buffer[]
}

const magic = Buffer.from('k8s\0')

/**
 * `undefined` where it is no whole envelope of one list of objects with metadata that can be read.
 */
export function readList(body: Buffer): ProtobufList | undefined {
  try {
    const [typeMeta, raw, ...more] = envelopeOf(body)
    if (!typeMeta || !raw || more.length > 0) return undefined
    const items: Buffer[] = []
    let resourceVersion = ''
    for (const { number, value } of readFields(raw)) {
      if (number === 2) items.push(message(value))
      else if (number === 1 && typeof value !== 'number') {
        resourceVersion = lastText(value, 2) ?? resourceVersion
      }
    }
    const kind = lastText(typeMeta, 2) ?? ''
    return kind === '' || !lastText(typeMeta, 1) ? undefined : { kind, resourceVersion, items }
  } catch {
    return undefined
  }
}

/** The last typeMeta, and every raw. */
function envelopeOf(body: Buffer): (Buffer | undefined)[] {
  if (!body.subarray(0, magic.length).equals(magic)) return []
  let typeMeta: Buffer | undefined
  const raws: Buffer[] = []
  for (const { number, value } of readFields(body.subarray(magic.length))) {
    if (number === 1 && typeof value !== 'number') typeMeta = value
    else if (number === 2) raws.push(message(value))
  }
  return [typeMeta, ...raws]
}

function message(value: number | Buffer): Buffer {
  if (typeof value === 'number') throw new Error('a number where a message is expected')
  return value
}

/** The last of the texts that a message has at `number`. */
function lastText(bytes: Buffer, number: number): string | undefined {
  let text: string | undefined
  for (const field of readFields(bytes)) {
    if (field.number === number && typeof field.value !== 'number') text = field.value.toString()
  }
  return text
}

/** The frames of a watch, and how many bytes are left over. */
export function framesOf(body: Buffer): { frames: Buffer[]; rest: number } {
  const frames: Buffer[] = []
  let at = 0
  while (body.length - at >= 4 && body.length - at - 4 >= body.readUInt32BE(at)) {
    const end = at + 4 + body.readUInt32BE(at)
    frames.push(body.subarray(at, end))
    at = end
  }
  return { frames, rest: body.length - at }
}
