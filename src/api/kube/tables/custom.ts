import type { Json, JsonObject } from '../json.ts'
import { listAt, printed, textAt, valueAt } from '../json-at.ts'
import { ageOf } from './age.ts'
import { ageColumn, nameColumn, type Column } from './column.ts'
import { parseJsonPath } from './json-path.ts'

/** Without columns of their own, custom resources are shown by name and age. */
export const defaultColumns: readonly Column[] = [nameColumn, ageColumn]

/**
 * The columns of a custom resource in one version, by its CustomResourceDefinition (apiextensions
 * pkg/registry/customresource/tableconvertor).
 */
export function customColumns(definition: JsonObject, version: string): readonly Column[] {
  const described = listAt(definition, 'spec', 'versions').find(
    (each) => textAt(each, 'name') === version,
  )
  const columns = listAt(described, 'additionalPrinterColumns')
  return columns.length === 0 ? defaultColumns : [nameColumn, ...columns.map(customColumn)]
}

function customColumn(described: Json): Column {
  const type = textAt(described, 'type')
  const read = parseJsonPath(textAt(described, 'jsonPath'))
  return {
    name: textAt(described, 'name'),
    type,
    format: textAt(described, 'format'),
    description: textAt(described, 'description'),
    priority: Number(valueAt(described, 'priority') ?? 0),
    cell: (object) => cellOf(type, read?.(object)),
  }
}

/** A value that is not of the column's type leaves the cell empty. */
function cellOf(type: string, value: Json | undefined): Json {
  if (value === undefined || value === null) return null
  switch (type) {
    case 'string':
      return printed(value)
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null
    case 'number':
      return typeof value === 'number' ? value : null
    case 'boolean':
      return typeof value === 'boolean' ? value : null
    case 'date':
      return dateCell(value)
    default:
      return null
  }
}

function dateCell(value: Json): Json {
  if (typeof value !== 'string') return null
  return Number.isNaN(Date.parse(value)) ? '<invalid>' : ageOf(value)
}
