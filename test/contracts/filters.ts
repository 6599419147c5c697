import { readdirSync, readFileSync } from 'node:fs'
import type { Test } from 'tap'
import { MalformedBody } from '../../src/api/codec/malformed-body.ts'
import { objectBody, readObject } from '../../src/api/codec/object.ts'
import { listKind, objectKind, type ListStream } from '../../src/api/codec/list.ts'
import { PathError } from '../../src/api/codec/element.ts'
import { bytesField, Fields } from '../../src/api/codec/protobuf/wire.ts'
import { isObjectEvent, type WatchEvent } from '../../src/api/codec/watch.ts'
import type { Exchange, Reply } from '../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../src/http/exchange/headers.ts'
import { schemaOf, type MessageSchema } from '../../src/api/codec/schema/schema.ts'
import { Filters } from '../../src/hub/filter/filters.ts'
import type { FilterDefinition, FilterRule } from '../../src/hub/filter/filter.ts'
import type { Inputs } from '../../src/hub/filter/inputs.ts'
import type { GVK } from '../../src/api/kube/gvk.ts'
import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import { mediaType, type Encoding } from '../../src/api/kube/media-type.ts'
import type { ApiObject } from '../../src/api/kube/object.ts'
import { StatusError } from '../../src/api/kube/status.ts'
import { withFilters } from '../../src/hub/pipeline/filter-answers.ts'
import { objectRepresentation } from '../../src/api/request/representation.ts'
import { exchangeOf } from '../kit/exchange.ts'
import { filteringOf } from '../kit/filtering.ts'
import { inputsOf } from '../kit/inputs.ts'
import {
  inBothEncodings,
  filteredObject,
  createdFilter,
  plain,
  withoutEmpty,
  type BothEncodings,
} from '../kit/filter-result.ts'
import { roundOf, type Random } from '../fuzz/random.ts'
import { cutList } from './cutter-list.ts'

/** What makes a filter act. */
export interface Sample {
  readonly known: Partial<Inputs>
  /** Objects that it changes or withholds. */
  readonly objects: readonly Expectation[]
}

/**
 * An object, which says its kind, and what it is to be shown as: written by hand, on plain values.
 */
export interface Expectation {
  readonly object: JsonObject
  readonly shown: JsonObject | 'withheld'
}

const encodings = ['json', 'protobuf'] as const

/** All that every filter owes, whatever it does; see filters/README.md. */
export function filterContract(t: Test, definition: FilterDefinition, sample: Sample): void {
  const filter = createdFilter(definition, sample.known)
  const samples = sample.objects.map(({ object, shown }) => ({
    ...inBothEncodings(object),
    object,
    shown,
  }))

  void t.test('the filter changes its samples, and applied again nothing', async (t) => {
    for (const both of samples) {
      for (const encoding of encodings) {
        const object = both[encoding]
        const look = filteredObject(filter, encoding, both.gvk, object)
        t.not(look, object, `${encoding}: it acts`)
        if (look)
          t.equal(filteredObject(filter, encoding, both.gvk, look), look, `${encoding}: idempotent`)
      }
    }
  })

  void t.test('the filter gives the expected objects in both encodings', async (t) => {
    for (const both of samples) {
      for (const encoding of encodings) {
        const look = filteredObject(filter, encoding, both.gvk, both[encoding])
        t.strictSame(valueOf(encoding, both.gvk, look), expectedOf(both.shown), encoding)
      }
    }
  })

  void t.test('get, list, watch and replies to writes show the filtered object', async (t) => {
    const filters = new Filters([definition], inputsOf(sample.known), {
      onFailure: (name, cause) => t.fail(`${name} failed`, { cause }),
      warn: () => undefined,
    })
    const layer = withFilters(filteringOf(filters))
    for (const both of samples) {
      const rules = definition.rules.filter((rule) => isAbout(rule, both.gvk))
      t.ok(rules.length > 0, `a rule is about ${both.gvk.kind}`)
      for (const { components } of rules) {
        for (const component of components) {
          for (const encoding of encodings) {
            for (const verb of verbs) {
              const seen = await answered(layer, component, verb, encoding, both)
              const name = `${component}: ${verb} in ${encoding}`
              t.strictSame(seen, expectedAnswer(verb, both), name)
            }
          }
        }
      }
    }
  })

  void t.test('a component without a rule gets the bytes as is', async (t) => {
    const filters = new Filters([definition], inputsOf(sample.known), {
      onFailure: (name, cause) => t.fail(`${name} failed`, { cause }),
      warn: () => undefined,
    })
    for (const both of samples) {
      for (const encoding of encodings) {
        const { exchange, reply } = asked('stranger', 'get', encoding, both)
        const answer = await withFilters(filteringOf(filters))(async () => reply)(exchange)
        t.equal(answer, reply, encoding)
      }
    }
  })

  void t.test('objects of other kinds are left alone, whatever is in them', async (t) => {
    const other = { group: 'coordination.k8s.io', version: 'v1', kind: 'Lease' }
    for (const { json } of samples) t.equal(filteredObject(filter, 'json', other, json), json)
  })

  void t.test('an object keeps its identity', async (t) => {
    for (const both of samples) {
      for (const encoding of encodings) {
        const look = filteredObject(filter, encoding, both.gvk, both[encoding])
        t.equal(look === undefined, both.shown === 'withheld')
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
    for (const { object } of sample.objects) {
      const both = inBothEncodings(object)
      const schema = schemaOf(both.gvk)
      if (!schema) throw new Error(`no schema of ${both.gvk.kind}`)
      const marked: Record<Encoding, ApiObject> = {
        json: { ...both.json, bytes: markedJson(schema, both.json) },
        protobuf: { ...both.protobuf, bytes: markedProtobuf(schema, both.protobuf.bytes, '') },
      }
      const marks = encodings.map((encoding) => {
        const before = filteredObject(filter, encoding, both.gvk, both[encoding])
        const after = filteredObject(filter, encoding, both.gvk, marked[encoding])
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

  void t.test('objects of any kind that stay the same keep their bytes', async (t) => {
    const failures: unknown[] = []
    let left = 0
    for (const { name, encoding, gvk, object } of fixtures) {
      try {
        const look = filteredObject(filter, encoding, gvk, object)
        if (look === object) left++
        else if (look) t.not(Buffer.compare(look.bytes, object.bytes), 0, `${name} is another`)
      } catch (cause) {
        failures.push({ name, cause })
      }
    }
    t.strictSame(failures, [], 'it fails at none')
    t.ok(left > 100, 'most are none of its business')
  })

  void t.test('no malformed object makes it throw', async (t) => {
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
          const look = chain.apply(gvk, encoding, { ...object, resourceVersion: '', bytes })
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

type Sampled = BothEncodings & Expectation

/**
 * Plain values as Go's decoders read them, so that both encodings and an expectation can be
 * compared.
 */
const valueOf = (encoding: Encoding, gvk: GVK, look: ApiObject | undefined): Json =>
  look === undefined ? 'withheld' : (withoutEmpty(plain(encoding, gvk, look)) ?? {})

const expectedOf = (shown: JsonObject | 'withheld'): Json => withoutEmpty(shown) ?? {}

const pluralOf = ({ kind }: GVK): string => kind.toLowerCase().replace(/s?$/, 's')

const isAbout = ({ group, resources }: FilterRule, gvk: GVK): boolean =>
  group === gvk.group && resources.includes(pluralOf(gvk))

const reads = ['get', 'list', 'watch'] as const
const writes = ['create', 'update', 'patch', 'delete'] as const
const verbs = [...reads, ...writes]

type Verb = (typeof verbs)[number]

/**
 * What was written was written: its reply shows what a read would, or the object itself where a
 * read would show none.
 */
function expectedAnswer(verb: Verb, { object, shown }: Expectation): Json {
  const isRead = reads.some((read) => read === verb)
  return expectedOf(shown === 'withheld' && !isRead ? object : shown)
}

const methods: Readonly<Record<Verb, string>> = {
  get: 'GET',
  list: 'GET',
  watch: 'GET',
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
}

/** A request, and the answer that the cloud or the cache gives to it, which is of one object. */
function asked(
  component: string,
  verb: Verb,
  encoding: Encoding,
  both: BothEncodings,
): { exchange: Exchange; reply: Reply } {
  const { gvk } = both
  const object = both[encoding]
  const prefix = gvk.group === '' ? '/api' : `/apis/${gvk.group}`
  const collection = `${prefix}/${gvk.version}/namespaces/${object.namespace}/${pluralOf(gvk)}`
  const isOfAll = verb === 'list' || verb === 'watch' || verb === 'create'
  const url = isOfAll ? collection : `${collection}/${object.name}`
  const headers = { 'User-Agent': `${component}/v1.36.0`, Accept: mediaType(encoding, false) }
  const exchange = exchangeOf(verb === 'watch' ? `${url}?watch=1` : url, {
    method: methods[verb],
    headers,
  })
  const representation = objectRepresentation(encoding)
  const reply = { status: 200, headers: new HeaderList(), from: 'cloud', representation } as const
  if (verb === 'list')
    return { exchange, reply: { ...reply, kind: 'list', list: listOf(both, object) } }
  if (verb !== 'watch') return { exchange, reply: { ...reply, kind: 'object', gvk, object } }
  const events = inGroups<WatchEvent>({ type: 'ADDED', object })
  return {
    exchange,
    reply: {
      ...reply,
      kind: 'watch',
      representation: () => representation,
      gvk: () => gvk,
      events,
    },
  }
}

const listOf = ({ gvk }: BothEncodings, object: ApiObject): ListStream => ({
  gvk: listKind(gvk),
  head: [],
  batches: inTurn({ objects: [object] }),
  end: async () => ({ meta: { resourceVersion: '7', continue: '' }, extra: '', tail: [] }),
})

async function* inTurn<T>(one: T): AsyncGenerator<T> {
  yield one
}

const inGroups = <T>(one: T): AsyncGenerator<readonly T[]> => inTurn([one])

/** What a component is shown of a sample by this layer of the data path. */
async function answered(
  layer: ReturnType<typeof withFilters>,
  component: string,
  verb: Verb,
  encoding: Encoding,
  both: Sampled,
): Promise<Json> {
  const { exchange, reply } = asked(component, verb, encoding, both)
  const answer = await layer(async () => reply)(exchange).catch((error: unknown) => {
    if (error instanceof StatusError && error.status.code === 404) return undefined
    throw error
  })
  const looks = answer ? await Array.fromAsync(objectsOf(answer)) : []
  if (looks.length > 1) throw new Error(`${looks.length} objects of one`)
  return valueOf(encoding, both.gvk, looks[0])
}

async function* objectsOf(answer: Reply): AsyncGenerator<ApiObject> {
  if (answer.kind === 'object') yield answer.object
  if (answer.kind === 'list') for await (const { objects } of answer.list.batches) yield* objects
  if (answer.kind !== 'watch') return
  for await (const events of answer.events) {
    for (const event of events) {
      if (event.type === 'ERROR') throw new Error(`the watch sent ${JSON.stringify(event)}`)
      if (isObjectEvent(event)) yield event.object
    }
  }
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
