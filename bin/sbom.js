// The packages that the hub needs in production, as a bill of materials in CycloneDX 1.6, from the
// lock file and what is installed.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Of the packages at these paths below `root`. The same for the same packages: neither time nor
 * random id is in it.
 */
export function billOfMaterials(root, manifest, paths) {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  const own = purlOf(manifest.name, manifest.version)
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: {
        type: 'application',
        'bom-ref': own,
        name: manifest.name,
        version: manifest.version,
        purl: own,
        licenses: [{ license: { id: manifest.license } }],
      },
    },
    components: paths.map((path) => componentOf(root, path, packages[path].integrity)),
  }
}

function componentOf(root, path, integrity) {
  const { name, version, license } = JSON.parse(
    readFileSync(join(root, path, 'package.json'), 'utf8'),
  )
  const [algorithm, checksum] = integrity?.split('-') ?? []
  return {
    type: 'library',
    // A package may be there twice, nested in another.
    'bom-ref': path,
    name,
    version,
    purl: purlOf(name, version),
    ...(typeof license === 'string' && { licenses: [{ expression: license }] }),
    ...(algorithm === 'sha512' && {
      hashes: [{ alg: 'SHA-512', content: Buffer.from(checksum, 'base64').toString('hex') }],
    }),
  }
}

const purlOf = (name, version) => `pkg:npm/${name.replace('@', '%40')}@${version}`
