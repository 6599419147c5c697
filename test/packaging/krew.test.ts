import { execFile } from 'node:child_process'
import { hash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { buildKrewManifest } from '../../packaging/krew.ts'
import { ownVersion } from '../../src/base/own-version.ts'

interface Platform {
  readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> }
  readonly uri?: string
  readonly sha256?: string
  readonly bin?: string
  readonly files?: readonly unknown[]
}

interface Manifest {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata?: { readonly name?: string }
  readonly spec?: {
    readonly version?: string
    readonly shortDescription?: string
    readonly platforms?: readonly Platform[]
  }
}

/** The rules by which krew refuses a manifest (krew internal/index/validation/validate.go). */
function refusals({ apiVersion, kind, metadata, spec = {} }: Manifest, name: string): string[] {
  const { version = '', shortDescription = '', platforms = [] } = spec
  const rules: readonly (readonly [boolean, string])[] = [
    [apiVersion === 'krew.googlecontainertools.github.com/v1alpha2', 'apiVersion'],
    [kind === 'Plugin', 'kind'],
    [/^[\w-]+$/.test(name) && metadata?.name === name, 'name'],
    [/^[^\r\n]+$/.test(shortDescription), 'shortDescription'],
    [/^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(version), 'version'],
    [platforms.length > 0, 'platforms'],
    ...platforms.flatMap(({ selector, uri, sha256, bin, files }) => {
      const labels = Object.keys(selector?.matchLabels ?? {})
      return [
        [URL.canParse(uri ?? ''), 'uri'],
        [/^[a-f0-9]{64}$/.test(sha256 ?? ''), 'sha256'],
        [(bin ?? '') !== '', 'bin'],
        [files === undefined, 'files'],
        [labels.length > 0 && labels.every((key) => ['os', 'arch'].includes(key)), 'selector'],
      ] as const
    }),
  ]
  return rules.flatMap(([holds, what]) => (holds ? [] : [what]))
}

void t.test(
  'the manifest for krew has the tarballs of this version, and keeps its rules',
  async (t) => {
    const out = t.testdir({
      'nodehub-1.2.3-linux-amd64.tar.gz': 'amd64',
      'nodehub-1.2.3-linux-arm64.tar.gz': 'arm64',
      'nodehub-1.2.2-linux-arm64.tar.gz': 'former',
    })
    const baseAddress = 'https://releases.example/nodehub/v1.2.3/'
    const file = buildKrewManifest({ version: '1.2.3', out, baseAddress })
    t.equal(file, join(out, 'nodehub.yaml'))
    const manifest = parse(readFileSync(file, 'utf8')) as Manifest
    t.strictSame(refusals(manifest, 'nodehub'), [])
    t.strictSame(
      manifest.spec?.platforms,
      ['amd64', 'arm64'].map((arch) => ({
        selector: { matchLabels: { os: 'linux', arch } },
        uri: `https://releases.example/nodehub/v1.2.3/nodehub-1.2.3-linux-${arch}.tar.gz`,
        sha256: hash('sha256', arch),
        bin: `nodehub-1.2.3-linux-${arch}/kubectl-nodehub`,
      })),
    )
    t.match(refusals({ spec: { platforms: [{}] } }, 'nodehub'), ['apiVersion', 'kind', 'name'])
  },
)

void t.test(
  'without a tarball there is no manifest, nor with an address of another kind',
  async (t) => {
    const out = t.testdir({})
    t.throws(
      () => buildKrewManifest({ version: ownVersion(), out, baseAddress: 'https://a' }),
      /has no nodehub-.*-linux-\*\.tar\.gz/,
    )
    const { promise, resolve } = Promise.withResolvers<number>()
    const program = join(import.meta.dirname, '..', '..', 'packaging', 'main.ts')
    const argv = [program, '--out', out, '--base-address', 'ftp://a']
    execFile(process.execPath, argv, (error) => resolve(Number(error?.code ?? 0)))
    t.equal(await promise, 2)
    t.notOk(existsSync(join(out, 'nodehub.yaml')))
  },
)
