// The three ways to patch that the API server offers for every object; server-side apply is not
// among them.
export { jsonPatch } from './json-patch.ts'
export { mergePatch } from './merge-patch.ts'
export { mergeSchemaOf } from './merge-schema.ts'
export { strategicMergePatch } from './strategic-merge-patch.ts'
