import { registerHooks } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { whyUntrusted } from '../../../base/ownership.ts'

/**
 * The modules of filters, and what they have imported: URLs without a query. Node asks its hooks
 * about every module of the process.
 */
const modules = new Set<string>()

/**
 * From now on what this module imports, and what that imports in turn, has to be as trusted as the
 * module itself, statically, dynamically or by its own `require`, and whenever. An import of what
 * is not fails before it is run. A `require` that the module makes for another path
 * (`module.createRequire`) is that path's, and not checked: the module itself is trusted code.
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
  // By the name that was written too: a link on the way to a trusted file may be another's.
  const named = /^(?:\.{0,2}\/|file:)/.test(specifier) ? new URL(specifier, from) : url
  for (const path of new Set([fileURLToPath(named), fileURLToPath(url)])) {
    const untrusted = whyUntrusted(path)
    if (untrusted !== undefined)
      throw new Error(`it imports ${path}, which is not to be trusted: ${untrusted}`)
  }
  modules.add(url)
  return resolved
}

const withoutQuery = (url: string): string => url.split(/[?#]/, 1)[0] ?? url
