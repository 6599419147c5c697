import type { FilterDefinition } from '../src/filter/filter.ts'
import { masterservice } from './masterservice.ts'

/** The filters of the hub, in the order in which they act: each sees what those before it made of an object. */
export const builtInFilters: readonly FilterDefinition[] = [masterservice]
