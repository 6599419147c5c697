/** Which sources faults are put into. */
import { globSync } from 'node:fs'

/** Where a fault does most harm. */
export const core: readonly string[] = [
  'src/api/codec',
  'src/api/kube',
  'src/api/request',
  'src/hub/store',
  'src/hub/pipeline',
  'src/hub/identity',
  'src/cluster/admission',
]

/** The sources in `folders`, which may be files. A score over fewer than named would mislead. */
export function sourcesIn(root: string, folders: readonly string[]): string[] {
  const all = globSync('{src,filters}/**/*.ts', { cwd: root }).toSorted()
  const isIn = (path: string, folder: string): boolean =>
    path === folder || path.startsWith(`${folder}/`)
  const empty = folders.filter((folder) => !all.some((path) => isIn(path, folder)))
  if (empty.length > 0) throw new Error(`no sources in ${empty.join(', ')}`)
  return all.filter((path) => folders.some((folder) => isIn(path, folder)))
}
