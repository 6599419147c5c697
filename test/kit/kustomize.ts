import { execFileSync } from 'node:child_process'
import { findBinaries } from './cluster/binaries.ts'

/** Why kubectl cannot build a chart by kustomize: helm 4 refuses what it passes. */
export function noKustomizeOfCharts(): string | false {
  const found = findBinaries(['kubectl', 'helm'])
  if ('missing' in found) return found.missing
  try {
    execFileSync(found.paths.helm, ['version', '-c', '--short'], { stdio: 'pipe' })
    return false
  } catch {
    return 'this helm does not know -c, which kustomize passes'
  }
}
