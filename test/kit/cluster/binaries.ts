import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Where envtest's set-up puts a control plane when it is not told otherwise. */
const envtestFolder = '/usr/local/kubebuilder/bin'

export type Found<Name extends string> =
  { readonly paths: Readonly<Record<Name, string>> } | { readonly missing: string }

/**
 * Looks for executables as envtest does: in `KUBEBUILDER_ASSETS`, else in its default folder, else on PATH (with the folders that
 * only root's PATH has). What is missing is said in words that a skipped test can give as its reason.
 */
export function findBinaries<Name extends string>(names: readonly Name[]): Found<Name> {
  const assets = process.env['KUBEBUILDER_ASSETS']
  const folders = [
    ...(assets ? [assets] : []),
    envtestFolder,
    ...(process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== ''),
    '/usr/sbin',
    '/sbin',
  ]
  const found = names.map((name) => [
    name,
    folders.map((folder) => join(folder, name)).find(executable),
  ])
  const missing = found.filter(([, path]) => path === undefined).map(([name]) => name)
  return missing.length === 0
    ? { paths: Object.fromEntries(found) as Record<Name, string> }
    : { missing: `no ${missing.join(', ')} in KUBEBUILDER_ASSETS, ${envtestFolder} or PATH` }
}

function executable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
