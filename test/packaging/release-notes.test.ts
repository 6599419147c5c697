import { readFileSync } from 'node:fs'
import t from 'tap'
import { releaseNotes } from '../../packaging/release-notes.ts'
import { ownVersion } from '../../src/base/own-version.ts'

const changelog = '# Changelog\n\n## 0.2.0 (unreleased)\n\n- two\n\n## 0.1.0\n\n- one\n'

void t.test('the notes of a release are its section of the changelog, and no other', async (t) => {
  t.equal(releaseNotes(changelog, '0.2.0'), '- two\n')
  t.equal(releaseNotes(changelog, '0.1.0'), '- one\n')
})

void t.test('a release without a changelog section is refused', async (t) => {
  t.throws(() => releaseNotes(changelog, '0.1'), /no section "## 0.1"/)
  t.throws(() => releaseNotes('## 0.3.0\n\n', '0.3.0'), /no section/)
})

void t.test('the version that is built has notes', async (t) => {
  const notes = releaseNotes(readFileSync('CHANGELOG.md', 'utf8'), ownVersion())
  t.match(notes, /^\*\*\w/m)
})
