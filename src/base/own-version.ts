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

function ownPackage(): Package {
  const file = ownPath('package.json')
  if (file === undefined) return {}
  return JSON.parse(readFileSync(file, 'utf8')) as Package
}

/** A file that is above the sources as it is above the built files; `undefined`: there is none. */
export function ownPath(path: string): string | undefined {
  for (let folder = import.meta.dirname; ; folder = dirname(folder)) {
    const here = join(folder, path)
    if (existsSync(here)) return here
    if (dirname(folder) === folder) return undefined
  }
}
