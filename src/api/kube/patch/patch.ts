// The three patch types that the API server offers for every object, without server-side apply.
export { jsonPatch } from './json-patch.ts'
export { mergePatch } from './merge-patch.ts'
export { mergeSchemaOf } from './merge-schema.ts'
export { strategicMergePatch } from './strategic-merge-patch.ts'
