import { readdirSync, readFileSync } from 'node:fs'
import type { Test } from 'tap'
import { MalformedBody } from '../../src/codec/malformed-body.ts'
import { objectBody, readObject } from '../../src/codec/object.ts'
import { objectKind } from '../../src/codec/list.ts'
import { PathError } from '../../src/codec/path-error.ts'
import { bytesField, Fields } from '../../src/codec/protobuf/wire.ts'
import { schemaOf, type MessageSchema } from '../../src/codec/schema/schema.ts'
import { Filters } from '../../src/filter/filters.ts'
import type { FilterDefinition } from '../../src/filter/filter.ts'
import type { Inputs } from '../../src/filter/inputs.ts'
import type { GVK } from '../../src/kube/gvk.ts'
import type { Json, JsonObject } from '../../src/kube/json.ts'
import type { Encoding } from '../../src/kube/media-type.ts'
import type { ApiObject } from '../../src/kube/object.ts'
import type { ResourceVerb } from '../../src/request/request-info.ts'
import { inputsOf } from '../kit/inputs.ts'
import { inBoth, judged, made, plain, withoutEmpty } from '../kit/look.ts'
import { roundOf, type Random } from '../fuzz/random.ts'
import { cutList } from './cutter-list.ts'

/** What makes a filter act. */
export interface Sample {
  readonly known: Partial<Inputs>
  /** Objects that it changes or withholds, each saying its kind. */
  readonly objects: readonly JsonObject[]
}

const encodings = ['json', 'protobuf'] as const

/** All that every filter owes, whatever it does; see filters/README.md. */
export function filterContract(t: Test, definition: FilterDefinition, sample: Sample): void {
  const filter = made(definition, sample.known)
  const samples = sample.objects.map(inBoth)

  void t.test('it acts on its samples, and the second time finds nothing to do', async (t) => {
    for (const both of samples) {
      for (const encoding of encodings) {
        const object = both[encoding]
        const look = judged(filter, encoding, both.gvk, object)
        t.not(look, object, `${encoding}: it acts`)
        if (look) t.equal(judged(filter, encoding, both.gvk, look), look, `${encoding}: idempotent`)
      }
    }
  })

  void t.test('JSON and protobuf are the same when decoded', async (t) => {
    for (const { gvk, json, protobuf } of samples) {
      const inJson = judged(filter, 'json', gvk, json)
      const inProtobuf = judged(filter, 'protobuf', gvk, protobuf)
      t.strictSame(
        inProtobuf && withoutEmpty(plain('protobuf', gvk, inProtobuf)),
        inJson && withoutEmpty(plain('json', gvk, inJson)),
      )
    }
  })

  void t.test('the same in list, watch and get, and in replies to writes', async (t) => {
    const filters = new Filters([definition], inputsOf(sample.known), {
      onFailure: (name, cause) => t.fail(`${name} failed`, { cause }),
      warn: () => undefined,
    })
    for (const both of samples) {
      for (const encoding of encodings) {
        const expected = judged(filter, encoding, both.gvk, both[encoding])
        for (const { components, group, resources } of definition.rules) {
          const gvr = { group, version: both.gvk.version, resource: resources[0] ?? '' }
          for (const verb of [
            'get',
            'list',
            'watch',
            'create',
            'update',
            'patch',
            'delete',
          ] as const) {
            const chain = filters.chainFor(components[0] ?? '', gvr, verb satisfies ResourceVerb)
            t.ok(chain, `it stands for ${verb}`)
            const look = chain?.look(both.gvk, encoding, both[encoding])
            t.strictSame(look?.bytes, expected?.bytes, `${verb} in ${encoding}`)
          }
        }
      }
    }
  })

  void t.test('an object stays the one it is', async (t) => {
    for (const both of samples) {
      for (const encoding of encodings) {
        const look = judged(filter, encoding, both.gvk, both[encoding])
        if (!look) continue
        const body = objectBody(encoding, 'object', both.gvk, look)
        const read = readObject(encoding, 'object', body)
        t.strictSame(read.gvk, both.gvk)
        for (const known of [look, read.object]) {
          const { bytes: _, ...is } = known
          const { bytes: __, ...was } = both[encoding]
          t.strictSame(is, was)
        }
      }
    }
  })

  void t.test('unknown fields are kept, at every depth and byte for byte', async (t) => {
    for (const object of sample.objects) {
      const both = inBoth(object)
      const schema = schemaOf(both.gvk)
      if (!schema) throw new Error(`no schema of ${both.gvk.kind}`)
      const marked: Record<Encoding, ApiObject> = {
        json: { ...both.json, bytes: markedJson(schema, both.json) },
        protobuf: { ...both.protobuf, bytes: markedProtobuf(schema, both.protobuf.bytes, '') },
      }
      const marks = encodings.map((encoding) => {
        const before = judged(filter, encoding, both.gvk, both[encoding])
        const after = judged(filter, encoding, both.gvk, marked[encoding])
        const all = marksIn(marked[encoding])
        t.ok(all.length > 2, 'there are unknown fields at several depths')
        if (!before || !after) {
          t.equal(after, before, 'withheld either way')
          return { all, kept: all }
        }
        const expected = plain(encoding, both.gvk, before)
        t.strictSame(unmarked(plain(encoding, both.gvk, after)), expected, 'else it is the same')
        const kept = marksIn(after)
        const inOrder = all.filter((mark) => kept.includes(mark))
        t.strictSame(kept, inOrder, 'each once, in their order')
        return { all, kept }
      })
      const [inJson, inProtobuf] = marks
      if (!inJson || !inProtobuf) throw new Error('two encodings')
      const inBothOfThem = inJson.all.filter((mark) => inProtobuf.all.includes(mark)).toSorted()
      const lost = marks.map(({ kept }) => inBothOfThem.filter((mark) => !kept.includes(mark)))
      t.strictSame(lost[0], lost[1], 'the same goes in both encodings')
      for (const mark of lost.flat()) {
        t.match(mark, /\d/, `${mark}: only what stands in a list goes with what is removed`)
      }
    }
  })

  void t.test('what it does not change leaves in the very bytes, of any kind', async (t) => {
    const failures: unknown[] = []
    let left = 0
    for (const { name, encoding, gvk, object } of fixtures) {
      try {
        const look = judged(filter, encoding, gvk, object)
        if (look === object) left++
        else if (look) t.not(Buffer.compare(look.bytes, object.bytes), 0, `${name} is another`)
      } catch (cause) {
        failures.push({ name, cause })
      }
    }
    t.strictSame(failures, [], 'it fails at none')
    t.ok(left > 100, 'most are none of its business')
  })

  void t.test('no object breaks it, however broken', async (t) => {
    const failed: unknown[] = []
    const filters = new Filters([definition], inputsOf(sample.known), {
      onFailure: (_, cause) => failed.push(cause),
      warn: () => undefined,
    })
    const rule = definition.rules[0]
    const gvr = { group: rule?.group ?? '', version: 'v1', resource: rule?.resources[0] ?? '' }
    const chain = filters.chainFor(rule?.components[0] ?? '', gvr, 'list')
    if (!chain) throw new Error('it stands for nothing')
    const ofItsOwn = samples.flatMap(({ gvk, ...objects }) =>
      encodings.map((encoding) => ({ name: 'sample', encoding, gvk, object: objects[encoding] })),
    )
    const random = roundOf(20_261_121, 6)
    let judgedAll = 0
    for (const [objects, times] of [
      [ofItsOwn, 150],
      [fixtures, 3],
    ] as const) {
      for (const { name, encoding, gvk, object } of objects) {
        for (let time = 0; time < times; time++) {
          const bytes = broken(random, encoding, object.bytes)
          const before = failed.length
          const look = chain.look(gvk, encoding, { ...object, resourceVersion: '', bytes })
          judgedAll++
          if (failed.length === before) continue
          if (definition.onError === 'withhold') t.equal(look, undefined, name)
          else if (look?.bytes !== bytes) t.fail(`${name}: a look that was begun and not finished`)
        }
      }
    }
    t.ok(judgedAll > 500)
    const others = failed.filter(
      (cause) => !(cause instanceof MalformedBody || cause instanceof PathError),
    )
    t.strictSame(others, [], 'it fails at what is broken, and at nothing else')
  })
}

interface Fixture {
  readonly name: string
  readonly encoding: Encoding
  readonly gvk: GVK
  readonly object: ApiObject
}

/** Every object that a kube-apiserver once gave, alone or in a list. */
const fixtures: readonly Fixture[] = fixturesIn(new URL('../fixtures/', import.meta.url))

function fixturesIn(folder: URL): Fixture[] {
  return readdirSync(folder).flatMap((name): Fixture[] => {
    const encoding = name.endsWith('.pb') ? 'protobuf' : name.endsWith('.json') ? 'json' : undefined
    if (!encoding) return []
    const body = readFileSync(new URL(name, folder))
    return objectsIn(encoding, body).map((found) => ({ name, encoding, ...found }))
  })
}

/** None of what is neither an object nor a list: documents, watches, errors of other kinds. */
function objectsIn(encoding: Encoding, body: Buffer): { gvk: GVK; object: ApiObject }[] {
  try {
    const { head, objects } = cutList(encoding, 'object', [body])
    if (head.gvk.kind.endsWith('List')) {
      return objects.map((object) => ({ gvk: objectKind(head.gvk), object }))
    }
  } catch {
    // No list.
  }
  try {
    return [readObject(encoding, 'object', body)]
  } catch {
    return []
  }
}

/** The unknown member of an object in JSON; its value is no number that JavaScript can hold. */
const unknownMember = 'zzUnknown'
const markOf = (path: string): string => `<mark:${path}>`

function markedJson(schema: MessageSchema, { bytes }: ApiObject): Buffer {
  const object = JSON.parse(Buffer.from(bytes).toString()) as JsonObject
  const text = JSON.stringify(marked(schema, object, ''))
  return Buffer.from(text.replaceAll('"1e400"', '1e400'))
}

function marked(schema: MessageSchema, message: JsonObject, path: string): JsonObject {
  const members = Object.entries(message).map(([name, value]): [string, Json] => {
    const field = schema.fields[name]
    const inner = field?.message?.()
    if (!field || !inner || field.map) return [name, value as Json]
    const at = `${path}.${name}`
    if (!field.repeated) return [name, marked(inner, value as JsonObject, at)]
    const elements = value as readonly JsonObject[]
    return [name, elements.map((element, index) => marked(inner, element, `${at}.${index}`))]
  })
  const mark = { 'a ': [markOf(path), '1e400', null] }
  return { ...Object.fromEntries(members), [unknownMember]: mark }
}

/** Plain values without the unknown members. */
function unmarked(value: JsonObject): JsonObject {
  const without = (key: string, member: Json): Json | undefined =>
    key === unknownMember ? undefined : member
  return JSON.parse(JSON.stringify(value, without)) as JsonObject
}

/** The number of the unknown field, beyond all that are in use. */
const unknownField = 2_047

function markedProtobuf(schema: MessageSchema, bytes: Uint8Array, path: string): Buffer {
  const parts: Buffer[] = []
  const counts = new Map<string, number>()
  for (const fields = new Fields(Buffer.from(bytes)); fields.next();) {
    const [name, field] =
      Object.entries(schema.fields).find(([, { number }]) => number === fields.number) ?? []
    const inner = field?.message?.()
    if (name === undefined || !field || !inner || field.map) {
      parts.push(fields.whole)
      continue
    }
    const index = counts.get(name) ?? 0
    counts.set(name, index + 1)
    const at = field.inline ? path : `${path}.${name}${field.repeated ? `.${index}` : ''}`
    // An embedded struct is no object of its own in JSON.
    const value = field.inline
      ? markedProtobuf({ ...inner, name: '' }, fields.value, at)
      : markedProtobuf(inner, fields.value, at)
    parts.push(bytesField(field.number, value))
  }
  if (schema.name !== '') parts.push(bytesField(unknownField, Buffer.from(markOf(path))))
  return Buffer.concat(parts)
}

const marksIn = ({ bytes }: ApiObject): string[] =>
  Buffer.from(bytes)
    .toString('latin1')
    .match(/<mark:[^>]*>/g) ?? []

/** Bytes with one of the ways in which they can be broken done to them, or several. */
function broken(random: Random, encoding: Encoding, bytes: Uint8Array): Buffer {
  let made: Buffer = Buffer.from(bytes)
  for (let times = 1 + random.below(3); times > 0; times--) {
    const ways = encoding === 'json' ? [...anyWays, ...jsonWays] : [...anyWays, ...protobufWays]
    made = (ways[random.below(ways.length)] as Way)(random, made)
  }
  return made
}

type Way = (random: Random, bytes: Buffer) => Buffer

const splice = (bytes: Buffer, start: number, end: number, by: Uint8Array | string): Buffer =>
  Buffer.concat([bytes.subarray(0, start), Buffer.from(by as string), bytes.subarray(end)])

const anyWays: readonly Way[] = [
  // Cut off, anywhere.
  (random, bytes) => bytes.subarray(0, random.below(bytes.length + 1)),
  // A hole.
  (random, bytes) => {
    const at = random.below(bytes.length + 1)
    return splice(bytes, at, Math.min(bytes.length, at + 1 + random.below(20)), '')
  },
  // Another byte.
  (random, bytes) => {
    const at = random.below(Math.max(1, bytes.length))
    return splice(bytes, at, at + 1, [random.below(256)] as unknown as Uint8Array)
  },
]

/** A value of a member, somewhere. */
const valueSomewhere = /:("(?:[^"\\]|\\.)*"|[\d.]+|true|false|null|\[\]|\{\})/g

/** In place of a value. */
const instead =
  (by: (random: Random) => string): Way =>
  (random, bytes) => {
    const values = [...bytes.toString('latin1').matchAll(valueSomewhere)]
    const found = values[random.below(Math.max(1, values.length))]
    if (!found) return bytes
    const start = found.index + 1
    return splice(
      bytes,
      start,
      start + (found[1] as string).length,
      Buffer.from(by(random), 'latin1'),
    )
  }

const jsonWays: readonly Way[] = [
  // Nested deep.
  instead(() => `${'['.repeat(50_000)}${']'.repeat(50_000)}`),
  instead(() => `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`),
  // Numbers that nothing holds.
  instead(() => '1e999999'),
  instead(() => `-${'9'.repeat(5_000)}`),
  // No UTF-8.
  instead(() => '"\xff\xfe\xc3"'),
  instead(() => '"\\ud800"'),
  // Something else than was meant.
  instead(
    (random) =>
      ['null', '[]', '{}', '0', 'true', '""', '[null]', '[[]]'][random.below(8)] as string,
  ),
  // A key twice.
  (random, bytes) => {
    const members = [...bytes.toString('latin1').matchAll(/[{,]("[^"]+"):(?="|\d|t|f|n)/g)]
    const found = members[random.below(Math.max(1, members.length))]
    if (!found) return bytes
    const at = found.index + 1
    return splice(bytes, at, at, Buffer.from(`${found[1]}:[{"name":"https"}],`, 'latin1'))
  },
]

const protobufWays: readonly Way[] = [
  // A length that lies, or a number with no end.
  (random, bytes) => {
    const at = random.below(Math.max(1, bytes.length))
    return splice(bytes, at, at + 1, Buffer.alloc(1 + random.below(11), 0xff))
  },
  // A message within itself.
  (_, bytes) => {
    let nested = bytes
    for (let depth = 0; depth < 20; depth++) nested = bytesField(2, nested)
    return nested
  },
  // Twice, which is once.
  (_, bytes) => Buffer.concat([bytes, bytes]),
]
