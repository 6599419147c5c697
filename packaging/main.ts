/** `npm run package`: packages of the built hub, with Node in them, and the release notes. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { buildDeb } from './deb.ts'
import { buildKrewManifest } from './krew.ts'
import type { Build } from './package-facts.ts'
import { stagePayload, type Payload } from './payload.ts'
import { buildReleaseNotes } from './release-notes.ts'
import { buildRpm } from './rpm.ts'
import { buildTarball } from './tarball.ts'

const formats: Readonly<Record<string, (payload: Payload, build: Build) => string>> = {
  deb: buildDeb,
  rpm: buildRpm,
  tar: buildTarball,
  notes: buildReleaseNotes,
}

const compressions = ['none', 'gzip', 'xz'] as const

const usage = `Usage: npm run package -- [deb] [rpm] [tar] [notes] [--out FOLDER] [--node FILE] [--compression none|gzip|xz] [--base-address ADDRESS]

Builds packages of what npm run build has made, and the release notes from CHANGELOG.md, all by
default, into packages/. Packages are for the processor of the Node that goes into them: by default
the one that runs this; for arm64, one for arm64.
deb takes dpkg-deb, rpm takes rpmbuild, tar takes tar.
With --base-address, where the tarballs will be found, the manifest for krew is written too, of all
tarballs of this version in the folder. krew unpacks gzip alone, which is the default then.
`

function main(argv: readonly string[]): number {
  const { values, positionals } = parseArgs({
    args: [...argv],
    options: {
      out: { type: 'string', default: 'packages' },
      node: { type: 'string', default: process.execPath },
      compression: { type: 'string' },
      'base-address': { type: 'string' },
      help: { type: 'boolean', default: false },
    },
    allowPositionals: true,
  })
  const baseAddress = values['base-address']
  const called = values.compression ?? (baseAddress === undefined ? 'xz' : 'gzip')
  const compression = compressions.find((each) => each === called)
  const isPublished =
    baseAddress === undefined || /^https?:$/.test(URL.parse(baseAddress)?.protocol ?? '')
  const unknown = positionals.filter((each) => !Object.hasOwn(formats, each))
  if (values.help || compression === undefined || unknown.length > 0 || !isPublished) {
    process.stderr.write(usage)
    return values.help ? 0 : 2
  }
  const out = resolve(values.out)
  mkdirSync(out, { recursive: true })
  const work = mkdtempSync(join(tmpdir(), 'nodehub-package-'))
  try {
    const project = join(import.meta.dirname, '..')
    const payload = stagePayload(join(work, 'payload'), { project, node: values.node })
    for (const format of positionals.length > 0 ? positionals : Object.keys(formats)) {
      const file = formats[format]?.(payload, { out, work, compression })
      process.stdout.write(`${file}\n`)
    }
    if (baseAddress !== undefined) {
      const { version } = payload
      process.stdout.write(`${buildKrewManifest({ version, out, baseAddress })}\n`)
    }
    return 0
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

process.exitCode = main(process.argv.slice(2))
