import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Teardown } from './wire/wire.ts'

/** A folder for files of filters, which nobody else may write. */
export class FilterFolder {
  readonly path: string

  constructor(t: Teardown) {
    this.path = mkdtempSync(join(tmpdir(), 'nodehub-filters-'))
    t.teardown(() => rmSync(this.path, { recursive: true, force: true }))
  }

  /** The file's path. */
  write(name: string, content: string, mode = 0o600): string {
    const file = join(this.path, name)
    writeFileSync(file, content)
    chmodSync(file, mode)
    return file
  }
}

/**
 * The source of a module with one filter of services for kube-proxy; `rest` comes last and wins.
 */
export const moduleOf = (name: string, judge: string, rest = ''): string => `
export const filter = {
  name: '${name}',
  rules: [{ components: ['kube-proxy'], group: '', resources: ['services'], verbs: ['get', 'list', 'watch'] }],
  onError: 'pass',
  needs: [],
  create: () => (service) => ${judge},
  ${rest}
}
`
