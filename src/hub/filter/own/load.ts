import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { FilterDefinition } from '../filter.ts'
import { reasonOf, Mistakes } from './mistakes.ts'
import { filtersOfModule } from './module.ts'
import { whyUntrusted } from '../../../base/ownership.ts'

/** Filters are written by hand: a larger file was named by mistake. */
export const maxFileBytes = 1024 * 1024

export type LoadedFilters =
  { readonly filters: readonly FilterDefinition[] } | { readonly mistakes: readonly string[] }

/**
 * Loads the filters of these files, in order: either all of them, or all mistakes in any of them.
 * `taken` are the names of other filters. Loading a module runs it.
 */
export async function loadFilters(
  files: readonly string[],
  taken: readonly string[],
): Promise<LoadedFilters> {
  const names = new Map(taken.map((name) => [name, 'a filter of the hub']))
  const filters: FilterDefinition[] = []
  const wrong: string[] = []
  for (const file of files) {
    const mistakes = new Mistakes(file)
    const loaded = await filtersOf(file, mistakes)
    for (const filter of loaded) {
      const other = names.get(filter.name)
      if (other !== undefined)
        mistakes.say('', `the name ${filter.name} is already that of ${other}`)
      names.set(filter.name, `a filter of ${file}`)
    }
    filters.push(...loaded)
    wrong.push(...mistakes.all)
  }
  return wrong.length > 0 ? { mistakes: wrong } : { filters }
}

async function filtersOf(file: string, mistakes: Mistakes): Promise<readonly FilterDefinition[]> {
  const path = resolve(file)
  const found = contentOf(path, mistakes)
  if (found === undefined) return []
  const hash = createHash('sha256').update(found).digest('hex').slice(0, 16)
  if (/\.m?[jt]s$/.test(path)) return filtersOfModule(path, hash, mistakes)
  mistakes.say('', 'is no module (.mjs, .mts, .js, .ts); filters are not declared in YAML any more')
  return []
}

function contentOf(path: string, mistakes: Mistakes): string | undefined {
  try {
    const untrusted = whyUntrusted(path)
    if (untrusted === undefined) {
      if (statSync(path).size <= maxFileBytes) return readFileSync(path, 'utf8')
      mistakes.say('', 'is larger than 1 MiB')
    } else mistakes.say('', `is not trusted: ${untrusted}`)
  } catch (cause) {
    mistakes.say('', `cannot be read: ${reasonOf(cause)}`)
  }
  return undefined
}
