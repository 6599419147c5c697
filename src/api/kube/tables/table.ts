import type { Json, JsonObject } from '../json.ts'
import { textAt } from '../json-at.ts'
import type { Column } from './columns.ts'

/** The columns as a Table defines them. */
export const columnDefinitions = (columns: readonly Column[]): JsonObject[] =>
  columns.map(({ cell: _cell, ...definition }) => definition)

/** An object's row; `carried` is what the row shows of the object. */
export const rowOf = (
  columns: readonly Column[],
  object: JsonObject,
  carried: Json,
): JsonObject => ({
  cells: columns.map(({ cell }) => cell(object)),
  ...rowConditions(object),
  object: carried,
})

/** An object's metadata as rows carry it by default. */
export const partialMetadata = (object: JsonObject, version: string): JsonObject => ({
  kind: 'PartialObjectMetadata',
  apiVersion: `meta.k8s.io/${version}`,
  metadata: object['metadata'] ?? {},
})

const completed: Readonly<Record<string, string>> = {
  Succeeded: 'The pod has completed successfully.',
  Failed: 'The pod failed.',
}

/** A pod that has ended is marked as completed. */
function rowConditions(object: JsonObject): JsonObject {
  if (textAt(object, 'kind') !== 'Pod') return {}
  const phase = textAt(object, 'status', 'phase')
  const message = completed[phase]
  if (message === undefined) return {}
  return { conditions: [{ type: 'Completed', status: 'True', reason: phase, message }] }
}
