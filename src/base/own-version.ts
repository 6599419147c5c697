import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * From the package's own package.json, which stands above the sources and above what was built of
 * them.
 */
export function ownVersion(): string {
  let folder = import.meta.dirname
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder)
    if (parent === folder) return 'unknown'
    folder = parent
  }
  const content: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const found = typeof content === 'object' && content && 'version' in content
  return found ? String(content.version) : 'unknown'
}
