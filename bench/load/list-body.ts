/** The checked properties of the body of a list. */
export interface ListFacts {
  readonly items: number
  readonly resourceVersion: string
}

/** Counts the items of a list's body. Throws if it is not a whole list in `mediaType`. */
export function readList(mediaType: string, body: Uint8Array): ListFacts {
  return mediaType.includes('protobuf')
    ? readProtobuf(Buffer.from(body.buffer, body.byteOffset, body.byteLength))
    : readJson(body)
}

function readJson(body: Uint8Array): ListFacts {
  const list = JSON.parse(new TextDecoder().decode(body)) as {
    metadata?: { resourceVersion?: string }
    items?: unknown[]
  }
  return {
    items: list.items?.length ?? 0,
    resourceVersion: list.metadata?.resourceVersion ?? '',
  }
}

/**
 * `k8s\0` and runtime.Unknown, whose field 2 is the list: field 1 its ListMeta, with the version in
 * field 2, field 2 each item.
 */
function readProtobuf(body: Buffer): ListFacts {
  if (body.toString('latin1', 0, 4) !== 'k8s\0') throw new Error('not an object in protobuf')
  const unknown = fieldsOf(body.subarray(4))
  const list = fieldsOf(unknown.find(({ number }) => number === 2)?.bytes ?? Buffer.alloc(0))
  const meta = fieldsOf(list.find(({ number }) => number === 1)?.bytes ?? Buffer.alloc(0))
  return {
    items: list.filter(({ number }) => number === 2).length,
    resourceVersion: meta.find(({ number }) => number === 2)?.bytes.toString() ?? '',
  }
}

/** The fields of a message with a length (wire type 2); numbers are passed over. */
function fieldsOf(message: Buffer): { number: number; bytes: Buffer }[] {
  const fields: { number: number; bytes: Buffer }[] = []
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let shift = 1; ; shift *= 128) {
      const byte = message[at++]
      if (byte === undefined) throw new Error('a message in protobuf was cut')
      value += (byte & 0x7f) * shift
      if (byte < 0x80) return value
    }
  }
  while (at < message.length) {
    const tag = varint()
    const length = varint()
    if (tag % 8 === 0) continue
    if (tag % 8 !== 2 || at + length > message.length)
      throw new Error('a message in protobuf was cut')
    fields.push({ number: Math.floor(tag / 8), bytes: message.subarray(at, at + length) })
    at += length
  }
  return fields
}
