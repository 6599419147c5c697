import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** From package.json. */
export const ownVersion = (): string => ownPackage().version ?? 'unknown'

/** The oldest supported major version of Node, from package.json. */
export const oldestNode = (): number =>
  Number(/\d+/.exec(ownPackage().engines?.node ?? '')?.[0] ?? 0)

interface Package {
  readonly version?: string
  readonly engines?: { readonly node?: string }
}

/** package.json is above the sources, and above the built files. */
function ownPackage(): Package {
  let folder = import.meta.dirname
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder)
    if (parent === folder) return {}
    folder = parent
  }
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Package
}
