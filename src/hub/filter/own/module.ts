import { registerHooks } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { after } from '../../../base/clock.ts'
import { whyUntrusted } from '../../../base/ownership.ts'
import type { FilterDefinition } from '../filter.ts'
import { checkedDefinition, isFields, printed, whyUnusable } from './definition.ts'
import { reasonOf, type Mistakes } from './mistakes.ts'

/** The timeout for loading a module, which only a module that waits for something exceeds. */
export const loadTimeoutMs = 10_000

/**
 * The filters that a module exports, singly or in lists, in the order of the exports' names; it may
 * also export functions and plain values. `hash` is that of its content: each content is loaded
 * once, and stays in memory for the life of the process.
 */
export async function filtersOfModule(
  file: string,
  hash: string,
  mistakes: Mistakes,
): Promise<readonly FilterDefinition[]> {
  const exported = await loaded(file, hash, mistakes)
  if (exported === undefined) return []
  const all = Object.entries(exported).flatMap(([name, value]): [string, unknown][] =>
    Array.isArray(value)
      ? value.map((each: unknown, at) => [`${name}[${at}]`, each])
      : isFields(value)
        ? [[name, value]]
        : [],
  )
  // A filter exported twice, as by default and by name, is one.
  const found = [...new Map(all.map(([name, value]) => [value, [name, value] as const])).values()]
  if (found.length === 0) mistakes.say('', `exports no filter definition${beside(exported)}`)
  return found.flatMap(([where, value]) => {
    try {
      return definitionOf(value, where, { file, hash }, mistakes) ?? []
    } catch (cause) {
      mistakes.say(where, `cannot be read: ${reasonOf(cause, file)}`)
      return []
    }
  })
}

/** The exports of a module without a definition, which may be one half of it. */
function beside(exported: Readonly<Record<string, unknown>>): string {
  const names = Object.keys(exported)
  return names.length === 0 ? ', nor anything else' : `, only ${printed(names)}`
}

/** Copied from the export, which may be an instance of a class, and may change later. */
function definitionOf(
  value: unknown,
  where: string,
  { file, hash }: { readonly file: string; readonly hash: string },
  mistakes: Mistakes,
): FilterDefinition | undefined {
  const definition = checkedDefinition(value, where, mistakes)
  if (!definition) return undefined
  const unusable = whyUnusable(definition, file)
  if (unusable !== undefined) {
    mistakes.say(where, unusable)
    return undefined
  }
  const { name, rules, onError, needs, awaits } = definition
  return {
    name,
    revision: hash,
    rules,
    onError,
    needs,
    ...(awaits && { awaits }),
    create: (inputs, warn) => definition.create(inputs, warn),
  }
}

async function loaded(
  file: string,
  hash: string,
  mistakes: Mistakes,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<'late'>()
  using _ = after(loadTimeoutMs, () => resolve('late'))
  trustImportsOf(file)
  try {
    const loading: Promise<Record<string, unknown>> = import(`${pathToFileURL(file).href}?${hash}`)
    loading.catch(() => undefined)
    const exported = await Promise.race([loading, late])
    if (exported !== 'late' && !('module.exports' in exported)) return exported
    // Node caches CommonJS modules by path: changed content would not be loaded.
    if (exported !== 'late')
      mistakes.say('', 'is a CommonJS module: filters are exported by `export`')
    else mistakes.say('', `has not loaded after ${loadTimeoutMs / 1000} s: it waits for something`)
  } catch (cause) {
    mistakes.say('', `cannot be loaded: ${reasonOf(cause, file)}`)
  }
  return undefined
}

/**
 * The modules of filters and their imports, as URLs without a query. Node calls its hooks for every
 * module of the process.
 */
const modules = new Set<string>()

/**
 * Requires from now on that what this module imports, directly or not, is as trusted as the module
 * itself, whether statically, dynamically or by its own `require`, and at any time. An untrusted
 * import fails before it runs. A `require` for another path (`module.createRequire`) is not
 * checked: the module itself is trusted code.
 */
function trustImportsOf(file: string): void {
  if (modules.size === 0) registerHooks({ resolve: resolveTrusted })
  modules.add(pathToFileURL(file).href)
}

type Resolve = NonNullable<Parameters<typeof registerHooks>[0]['resolve']>

const resolveTrusted: Resolve = (specifier, context, next) => {
  const resolved = next(specifier, context)
  const { parentURL: from } = context
  if (from === undefined || !modules.has(withoutQuery(from))) return resolved
  if (!resolved.url.startsWith('file:')) return resolved
  const url = withoutQuery(resolved.url)
  // Also by the name as written: a link on the way to a trusted file may belong to another user.
  const named = /^(?:\.{0,2}\/|file:)/.test(specifier) ? new URL(specifier, from) : url
  for (const path of new Set([fileURLToPath(named), fileURLToPath(url)])) {
    const untrusted = whyUntrusted(path)
    if (untrusted !== undefined)
      throw new Error(`it imports ${path}, which is not trusted: ${untrusted}`)
  }
  modules.add(url)
  return resolved
}

const withoutQuery = (url: string): string => url.split(/[?#]/, 1)[0] ?? url
