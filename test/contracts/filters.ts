import { readdirSync, readFileSync } from 'node:fs'
import type { Test } from 'tap'
import { MalformedBody } from '../../src/api/codec/malformed-body.ts'
import { objectBody, readObject } from '../../src/api/codec/object.ts'
import { objectKind } from '../../src/api/codec/list.ts'
import { PathError } from '../../src/api/codec/element.ts'
import type { FilterDefinition } from '../../src/hub/filter/filter.ts'
import type { Inputs } from '../../src/hub/filter/inputs.ts'
import type { GVK } from '../../src/api/kube/gvk.ts'
import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import type { Encoding } from '../../src/api/kube/media-type.ts'
import type { ApiObject } from '../../src/api/kube/object.ts'
import { filtersOf } from '../kit/inputs.ts'
import {
  inBothEncodings,
  filteredObject,
  createdFilter,
  plain,
  withoutEmpty,
} from '../kit/filter-result.ts'
import { mutated } from '../fuzz/mutate.ts'
import { roundOf } from '../fuzz/random.ts'
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
        const body = objectBody(encoding, both.gvk, look)
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
    const filters = filtersOf([definition], sample.known, (_, cause) => failed.push(cause))
    const rule = definition.rules[0]
    const gvr = { group: rule?.group ?? '', version: 'v1', resource: rule?.resources[0] ?? '' }
    const chain = filters.chainFor(rule?.components[0] ?? '', gvr, 'list')
    if (!chain) throw new Error('it stands for nothing')
    const ofItsOwn = samples.flatMap(({ gvk, ...objects }) =>
      encodings.map((encoding) => ({ name: 'sample', encoding, gvk, object: objects[encoding] })),
    )
    const random = roundOf(20_261_121, 6)
    const pieces = samples.flatMap(({ json, protobuf }) => [json, protobuf])
    const others = pieces.map(({ bytes }) => Buffer.from(bytes))
    let judgedAll = 0
    for (const [objects, times] of [
      [ofItsOwn, 150],
      [fixtures, 3],
    ] as const) {
      for (const { name, encoding, gvk, object } of objects) {
        for (let time = 0; time < times; time++) {
          const bytes = mutated(random, Buffer.from(object.bytes), others)
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
    const unexpected = failed.filter(
      (cause) => !(cause instanceof MalformedBody || cause instanceof PathError),
    )
    t.strictSame(unexpected, [], 'it fails at what is broken, and at nothing else')
  })
}

/**
 * Plain values as Go's decoders read them, so that both encodings and an expectation can be
 * compared.
 */
const valueOf = (encoding: Encoding, gvk: GVK, look: ApiObject | undefined): Json =>
  look === undefined ? 'withheld' : (withoutEmpty(plain(encoding, gvk, look)) ?? {})

const expectedOf = (shown: JsonObject | 'withheld'): Json => withoutEmpty(shown) ?? {}

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
