import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { PageFile } from '../../../http/server/status-page.ts'

const types: Readonly<Record<string, string>> = {
  'index.html': 'text/html; charset=utf-8',
  'page.css': 'text/css; charset=utf-8',
  'page.js': 'text/javascript; charset=utf-8',
  'icon.svg': 'image/svg+xml',
}

/** The files of the status page by their paths; none where the folder `status-page` is missing. */
export function pageFiles(): ReadonlyMap<string, PageFile> {
  const folder = pageFolder()
  if (folder === undefined) return new Map()
  return new Map(
    Object.entries(types).map(([name, type]) => [
      name === 'index.html' ? '/' : `/${name}`,
      { type, content: readFileSync(join(folder, name)) },
    ]),
  )
}

/** It is above this file, in the sources as among the built files. */
function pageFolder(): string | undefined {
  for (let folder = import.meta.dirname; ; folder = dirname(folder)) {
    const here = join(folder, 'status-page')
    if (existsSync(join(here, 'index.html'))) return here
    if (dirname(folder) === folder) return undefined
  }
}
