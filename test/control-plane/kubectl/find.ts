import { execFileSync } from 'node:child_process'
import { readdirSync, realpathSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'

export interface Kubectl {
  readonly path: string
  /** As it names itself: `v1.33.1`. */
  readonly version: string
}

/**
 * Every kubectl there is, one a version: those on PATH, and those beside where one on PATH really lies (installations that keep
 * several do it so).
 */
export function findKubectls(): Kubectl[] {
  const onPath = (process.env['PATH'] ?? '').split(delimiter)
  const folders = new Set(onPath.flatMap((folder) => [folder, ...realHome(folder)]))
  const paths = [...folders].flatMap(kubectlsIn)
  const byVersion = new Map<string, Kubectl>()
  for (const path of paths) {
    const version = versionOf(path)
    // A dispatcher runs one of the others, as the server's version would have it.
    if (version !== undefined && !version.includes('dispatcher'))
      byVersion.set(version, { path, version })
  }
  return [...byVersion.values()].toSorted((a, b) =>
    a.version.localeCompare(b.version, 'en', { numeric: true }),
  )
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
