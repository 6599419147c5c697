import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Build } from './package-facts.ts'
import type { Payload } from './payload.ts'

/**
 * What CHANGELOG.md says of a version, without its heading. Throws where it says nothing: a release
 * without notes is not one.
 */
export function releaseNotes(changelog: string, version: string): string {
  const sections = changelog.split(/^## /m).slice(1)
  const section = sections.find((each) => each.split(/\s/, 1)[0] === version)
  const text = section?.slice(section.indexOf('\n')).trim()
  if (!text) throw new Error(`CHANGELOG.md has no section "## ${version}"`)
  return `${text}\n`
}

/** Writes `nodehub-VERSION-release-notes.md`. */
export function buildReleaseNotes({ version }: Payload, { out }: Build): string {
  const file = join(out, `nodehub-${version}-release-notes.md`)
  const changelog = readFileSync(join(import.meta.dirname, '..', 'CHANGELOG.md'), 'utf8')
  writeFileSync(file, releaseNotes(changelog, version))
  return file
}
