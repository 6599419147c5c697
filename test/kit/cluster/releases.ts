import { execFileSync } from 'node:child_process'
import { dirname } from 'node:path'
import { findBinaries } from './binaries.ts'

/**
 * The Kubernetes versions that nodehub supports; docs/compatibility.md has what each can do.
 */
const supportedMinors = ['1.31', '1.32', '1.33', '1.34', '1.35', '1.36'] as const

/**
 * Programs of one Kubernetes version, in one folder: its API server, and whichever others there
 * are.
 */
export interface Release {
  /** As `1.36`. */
  readonly minor: string
  /** As its API server names it: `v1.36.2`. */
  readonly version: string
  readonly folder: string
}

export interface Releases {
  /** The oldest first; one a minor version. */
  readonly found: readonly Release[]
  /** Supported versions that are not among them. */
  readonly missing: readonly string[]
  /** Variables that name what is not there. */
  readonly mistakes: readonly string[]
}

/**
 * Reads the version of the API server in a folder, and names the folder; `undefined` if there is
 * none.
 */
export type ReadVersion = (folder: string | undefined) => Omit<Release, 'minor'> | undefined

const variable = /^KUBEBUILDER_ASSETS_(\d+)_(\d+)$/

/**
 * Looks for API servers of several Kubernetes versions: in the folder that
 * `KUBEBUILDER_ASSETS_1_33` names for 1.33, and where envtest looks for the only one. A variable
 * whose folder holds no API server, or one of another version, is a mistake: what it was set for is
 * not tried.
 */
export function findReleases(
  env: NodeJS.ProcessEnv = process.env,
  readVersion: ReadVersion = versionIn,
): Releases {
  const byMinor = new Map<string, Release>()
  const mistakes: string[] = []
  for (const [name, folder] of Object.entries(env)) {
    const [, major, number] = variable.exec(name) ?? []
    if (major === undefined || !folder) continue
    const minor = `${major}.${number}`
    const release = readVersion(folder)
    if (release === undefined) mistakes.push(`${name}: no kube-apiserver in ${folder}`)
    else if (minorOf(release.version) !== minor)
      mistakes.push(`${name}: ${folder} holds ${release.version}`)
    else byMinor.set(minor, { ...release, minor })
  }
  const usual = readVersion(undefined)
  if (usual) {
    const minor = minorOf(usual.version)
    if (!byMinor.has(minor)) byMinor.set(minor, { ...usual, minor })
  }
  return {
    found: [...byMinor.values()].toSorted((a, b) =>
      a.minor.localeCompare(b.minor, 'en', { numeric: true }),
    ),
    missing: supportedMinors.filter((minor) => !byMinor.has(minor)),
    mistakes,
  }
}

/** The version of the API server that tests start, where it is older than `minor`. */
export function versionBefore(
  minor: string,
  readVersion: ReadVersion = versionIn,
): string | undefined {
  const version = readVersion(undefined)?.version
  if (version === undefined) return undefined
  const isOlder = minorOf(version).localeCompare(minor, 'en', { numeric: true }) < 0
  return isOlder ? version : undefined
}

const minorOf = (version: string): string => /^v(\d+\.\d+)\./.exec(version)?.[1] ?? version

function versionIn(folder: string | undefined): Omit<Release, 'minor'> | undefined {
  const found = findBinaries(['kube-apiserver'], folder === undefined ? undefined : { folder })
  if ('missing' in found) return undefined
  const path = found.paths['kube-apiserver']
  const said = execFileSync(path, ['--version']).toString()
  return { version: said.trim().split(' ').at(-1) ?? '', folder: folder ?? dirname(path) }
}
