import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Where envtest's set-up puts a control plane when it is not told otherwise. */
const envtestFolder = '/usr/local/kubebuilder/bin'

export type FoundBinaries<Name extends string> =
  { readonly paths: Readonly<Record<Name, string>> } | { readonly missing: string }

/**
 * Programs that are of a Kubernetes version: taken from different folders they would be of
 * different ones.
 */
const ofKubernetes = (name: string): boolean => name.startsWith('kube')

/**
 * Looks for executables as envtest does: in `KUBEBUILDER_ASSETS`, else in its default folder, else
 * on PATH (with the folders that only root's PATH has). With `release`, its folder comes first, and
 * Kubernetes' own programs are looked for nowhere else. What is missing is said in words that a
 * skipped test can give as its reason.
 */
export function findBinaries<Name extends string>(
  names: readonly Name[],
  release?: { readonly folder: string },
): FoundBinaries<Name> {
  const assets = process.env['KUBEBUILDER_ASSETS']
  const usual = [
    ...(assets ? [assets] : []),
    envtestFolder,
    ...(process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== ''),
    '/usr/sbin',
    '/sbin',
  ]
  const foldersFor = (name: string): readonly string[] => {
    if (release === undefined) return usual
    return ofKubernetes(name) ? [release.folder] : [release.folder, ...usual]
  }
  const found = names.map((name) => [
    name,
    foldersFor(name)
      .map((folder) => join(folder, name))
      .find(executable),
  ])
  const missing = found.filter(([, path]) => path === undefined).map(([name]) => name)
  const where = release?.folder ?? `KUBEBUILDER_ASSETS, ${envtestFolder} or PATH`
  return missing.length === 0
    ? { paths: Object.fromEntries(found) as Record<Name, string> }
    : { missing: `no ${missing.join(', ')} in ${where}` }
}

function executable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
