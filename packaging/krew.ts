import { hash } from 'node:crypto'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { tarballPlugin } from './tarball.ts'

interface Published {
  readonly version: string
  /** The folder of the tarballs, where the manifest goes too. */
  readonly out: string
  /** Where the tarballs will be found, without their names. */
  readonly baseAddress: string
}

/**
 * Writes `nodehub.yaml`, by which krew installs `kubectl nodehub` from the tarballs of this version
 * that are in `out`: those of one run for each processor. krew unpacks none but gzip. Throws where
 * there is none.
 */
export function buildKrewManifest({ version, out, baseAddress }: Published): string {
  const names = globSync(`nodehub-${version}-linux-*.tar.gz`, { cwd: out }).toSorted()
  if (names.length === 0) throw new Error(`${out} has no nodehub-${version}-linux-*.tar.gz`)
  const manifest = {
    apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
    kind: 'Plugin',
    metadata: { name: 'nodehub' },
    spec: {
      version: `v${version}`,
      shortDescription: 'The hubs of all nodes: online, release, offline-ready',
      description:
        'Shows for each node whether it is online, the release of its nodehub, whether it and its pods would come back without a link, and what fails; and what the hub of a node knows of a request.\n',
      platforms: names.map((name) => ({
        selector: { matchLabels: { os: 'linux', arch: architectureIn(name) } },
        uri: `${baseAddress.replace(/\/$/, '')}/${name}`,
        sha256: hash('sha256', readFileSync(join(out, name))),
        bin: `${name.replace(/\.tar\.gz$/, '')}/${tarballPlugin}`,
      })),
    },
  }
  const file = join(out, 'nodehub.yaml')
  writeFileSync(file, stringify(manifest, { lineWidth: 0 }))
  return file
}

const architectureIn = (name: string): string =>
  name.slice(name.lastIndexOf('-') + 1).split('.')[0] ?? ''
