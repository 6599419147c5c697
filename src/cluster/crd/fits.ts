import { isList, isObject, type Json } from '../../api/kube/json.ts'
import type { Schema } from './schema.ts'

/** Whether `value` is valid under `schema`. */
export function fits(schema: Schema, value: Json): boolean {
  switch (schema.type) {
    case 'boolean':
      return typeof value === 'boolean'
    case 'integer':
      return Number.isInteger(value) && Math.abs(value as number) < 2 ** 31
    case 'string':
      return typeof value === 'string' && fitsText(schema, value)
    case 'array':
      return isList(value) && value.every((item) => !schema.items || fits(schema.items, item))
    case 'object':
      return isObject(value) && fitsObject(schema, Object.entries(value))
  }
}

const fitsText = ({ enum: words, format }: Schema, value: string): boolean =>
  (words?.includes(value) ?? true) && (format !== 'date-time' || !Number.isNaN(Date.parse(value)))

function fitsObject(schema: Schema, members: readonly (readonly [string, Json])[]): boolean {
  const { properties, additionalProperties, required = [] } = schema
  const known = new Map(Object.entries(properties ?? {}))
  const named = new Set(members.map(([name]) => name))
  return (
    required.every((name) => named.has(name)) &&
    members.every(([name, value]) => {
      const member = known.get(name) ?? additionalProperties
      return member !== undefined && fits(member, value)
    })
  )
}
