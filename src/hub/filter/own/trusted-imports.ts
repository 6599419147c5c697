import { registerHooks } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { whyUntrusted } from '../../../base/ownership.ts'

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
export function trustImportsOf(file: string): void {
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
