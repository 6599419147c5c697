import { execFileSync } from 'node:child_process'
import { readdirSync, realpathSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { findBinaries } from '../../kit/cluster/binaries.ts'

export interface Kubectl {
  readonly path: string
  /** As it names itself: `v1.33.1`. */
  readonly version: string
}

/**
 * Every kubectl there is, one a version, the oldest first: those on PATH, those beside where one on
 * PATH really lies (installations that keep several do it so), and that of the control plane.
 */
export function findKubectls(): Kubectl[] {
  const onPath = (process.env['PATH'] ?? '').split(delimiter)
  const ofControlPlane = findBinaries(['kubectl'])
  const folders = new Set([
    ...onPath.flatMap((folder) => [folder, ...realHome(folder)]),
    ...('paths' in ofControlPlane ? [dirname(ofControlPlane.paths.kubectl)] : []),
  ])
  const paths = [...folders].flatMap(kubectlsIn)
  const byVersion = new Map<string, Kubectl>()
  for (const path of paths) {
    const version = versionOf(path)
    // A dispatcher runs one of the others, as the server's version would have it.
    if (version !== undefined && !version.includes('dispatcher'))
      byVersion.set(version, { path, version })
  }
  return [...byVersion.values()].toSorted((a, b) => older(a.version, b.version))
}

/** Negative where `a` is older than `b`. */
const older = (a: string, b: string): number => a.localeCompare(b, 'en', { numeric: true })

/**
 * The first kubectl that reads discovery as every API server has it: those of 1.36 and later do not
 * speak that of kubectl 1.26 to 1.29, which then ask for each group.
 */
export const discoversSince = 'v1.30'

/**
 * Those that a run compares, from version `since` on: the oldest and the newest, or all of them
 * where `NODEHUB_TEST_KUBECTLS` is `all`.
 */
export function comparedKubectls(since = 'v1.0'): Kubectl[] {
  const found = findKubectls().filter(({ version }) => older(since, version) <= 0)
  if (process.env['NODEHUB_TEST_KUBECTLS'] === 'all') return found
  return found.length > 2 ? [...found.slice(0, 1), ...found.slice(-1)] : found
}

function realHome(folder: string): string[] {
  try {
    return [dirname(realpathSync(join(folder, 'kubectl')))]
  } catch {
    return []
  }
}

function kubectlsIn(folder: string): string[] {
  try {
    const names = readdirSync(folder).filter((name) => /^kubectl([.-]v?1\.\d+.*)?$/.test(name))
    return names.map((name) => join(folder, name))
  } catch {
    return []
  }
}

function versionOf(path: string): string | undefined {
  try {
    const told = execFileSync(path, ['version', '--client', '--output=json'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const { clientVersion } = JSON.parse(told.toString()) as {
      clientVersion: { gitVersion: string }
    }
    return clientVersion.gitVersion
  } catch {
    return undefined
  }
}
