import {
  fieldsOf,
  type PoolVersion,
  type Schema,
} from '../../../src/cluster/crd/node-pool-schema.ts'
import type { Json, JsonObject } from '../../../src/api/kube/json.ts'
import type { Random } from '../../fuzz/random.ts'

/** Any value that fits the schema. */
export function randomValue(random: Random, schema: Schema): Json {
  switch (schema.type) {
    case 'boolean':
      return random.once(2)
    case 'integer':
      return random.below(5)
    case 'string':
      if (schema.format === 'date-time') return `2026-11-0${1 + random.below(9)}T00:00:00Z`
      return random.of(schema.enum ?? ['', 'a', 'b', 'true', '"}'])
    case 'array':
      return Array.from({ length: random.below(3) }, () =>
        randomValue(random, schema.items ?? { type: 'string' }),
      )
    case 'object':
      return randomObject(random, schema)
  }
}

function randomObject(random: Random, schema: Schema): JsonObject {
  const { properties, additionalProperties, required = [] } = schema
  const named = Object.entries(properties ?? {}).filter(
    ([name]) => required.includes(name) || !random.once(3),
  )
  const free = additionalProperties
    ? Array.from({ length: random.below(3) }, (_, at) => [`k${at}`, additionalProperties] as const)
    : []
  return Object.fromEntries(
    [...named, ...free].map(([name, member]) => [name, randomValue(random, member)]),
  )
}

/** Any pool that the version can say, or that somebody has written in it. */
export function randomPool(random: Random, version: PoolVersion): JsonObject {
  const annotations = {
    ...(random.once(2) && { note: 'kept' }),
    // In a conversion it goes where it is no field.
    ...(version !== 'v1beta2' &&
      random.once(2) && {
        'nodepool.openyurt.io/hostnetwork': random.of(['true', 'True', 'false', '']),
      }),
  }
  const section = (name: 'spec' | 'status') =>
    random.once(8)
      ? {}
      : { [name]: randomObject(random, { type: 'object', properties: fieldsOf[version][name] }) }
  return {
    apiVersion: `apps.openyurt.io/${version}`,
    kind: 'NodePool',
    metadata: {
      name: 'hangzhou',
      uid: 'u-1',
      resourceVersion: '7',
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
    ...section('spec'),
    ...section('status'),
  }
}
