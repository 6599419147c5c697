import type { Test } from 'tap'
import { cursorOf } from '../../src/api/codec/cursor.ts'
import { applyEdits } from '../../src/api/codec/edit.ts'
import { objectBody, readObject } from '../../src/api/codec/object.ts'
import type { Filter, FilterDefinition } from '../../src/hub/filter/filter.ts'
import type { Inputs } from '../../src/hub/filter/inputs.ts'
import { parseApiVersion, type GVK } from '../../src/api/kube/gvk.ts'
import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import type { Encoding } from '../../src/api/kube/media-type.ts'
import type { ApiObject } from '../../src/api/kube/object.ts'
import { fromProtobuf, toProtobuf } from '../../src/sandbox/protobuf.ts'
import { inputsOf } from './inputs.ts'

/** An object in both encodings. */
export interface BothEncodings {
  readonly gvk: GVK
  readonly json: ApiObject
  readonly protobuf: ApiObject
}

/** `object` as the API server writes it in each encoding; it names its kind. */
export function inBothEncodings(object: JsonObject): BothEncodings {
  const { kind, apiVersion } = object as { kind: string; apiVersion: string }
  const gvk = { ...parseApiVersion(apiVersion), kind }
  const json = readObject('json', 'object', Buffer.from(`${JSON.stringify(object)}\n`)).object
  const protobuf = readObject('protobuf', 'object', toProtobuf(gvk, object)).object
  return { gvk, json, protobuf }
}

/** The filter that a definition creates for these inputs; fails the test if it creates none. */
export function createdFilter(definition: FilterDefinition, known: Partial<Inputs>): Filter {
  const filter = definition.create(inputsOf(known), () => undefined)
  if (!filter) throw new Error(`${definition.name} does nothing here`)
  return filter
}

/**
 * The result of a filter: the same instance if it keeps the object, `undefined` if it withholds it.
 */
export function filteredObject(
  filter: Filter,
  encoding: Encoding,
  gvk: GVK,
  object: ApiObject,
): ApiObject | undefined {
  const judgement = filter(cursorOf(encoding, gvk, object))
  if (judgement === 'withhold') return undefined
  return judgement === 'leave' ? object : applyEdits(encoding, gvk, object, judgement)
}

/** The JSON of an object in an encoding. */
export function plain(encoding: Encoding, gvk: GVK, object: ApiObject): JsonObject {
  const body = objectBody(encoding, gvk, object)
  if (encoding === 'protobuf') return fromProtobuf(body).object
  return JSON.parse(body.toString()) as JsonObject
}

/** Without null and empty values, which Go's decoders do not distinguish from missing ones. */
export function withoutEmpty(value: Json | undefined): Json | undefined {
  if (Array.isArray(value)) {
    const elements = value.map((element) => withoutEmpty(element) ?? null)
    return elements.length > 0 ? elements : undefined
  }
  if (value === null || typeof value !== 'object')
    return value === '' || value === null ? undefined : value
  const members = Object.entries(value).flatMap(([key, member]) => {
    const kept = withoutEmpty(member)
    return kept === undefined ? [] : [[key, kept] as const]
  })
  return members.length > 0 ? Object.fromEntries(members) : undefined
}

/**
 * The result of a filter, which has to be the same in both encodings: 'left' means the original
 * bytes.
 */
export function filterResult(
  t: Test,
  filter: Filter,
  object: JsonObject,
): JsonObject | 'left' | 'withheld' {
  const both = inBothEncodings(object)
  const results = (['json', 'protobuf'] as const).map((encoding) => {
    const result = filteredObject(filter, encoding, both.gvk, both[encoding])
    if (result === undefined) return 'withheld'
    return result === both[encoding] ? 'left' : plain(encoding, both.gvk, result)
  })
  const [inJson, inProtobuf] = results
  if (typeof inJson !== 'object' || typeof inProtobuf !== 'object') {
    t.equal(inProtobuf, inJson, 'the same in both encodings')
    return inJson ?? 'left'
  }
  t.strictSame(withoutEmpty(inProtobuf), withoutEmpty(inJson), 'the same in both encodings')
  return inJson
}
