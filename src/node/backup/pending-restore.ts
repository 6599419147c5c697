import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { syncFolder } from '../../base/folder.ts'
import { databaseFiles, lockDirectory } from '../../hub/store/sqlite/copy.ts'
import { isStatePath, keyName } from './manifest.ts'

/** The parts that a staged restore puts in place. */
export interface RestorePlan {
  /** The folder of the store. */
  readonly cachePath: string
  readonly hasStore: boolean
  /** Whether the key on the node is replaced. */
  readonly withKey: boolean
  /** Files and folders in the hub's folder. */
  readonly names: readonly string[]
}

/**
 * The folders of a restore in the hub's folder. It is decided once `staging` has become `pending`:
 * before that nothing has changed; from then on the next start, or the next restore, puts it in
 * place.
 */
export const restoreFolders = (rootDir: string) => {
  const pending = join(rootDir, 'restore')
  const stateIn = (folder: string): string => join(folder, 'state')
  const planIn = (folder: string): string => join(folder, 'plan.json')
  return { staging: `${pending}.new`, pending, stateIn, planIn }
}

/** Whether a restore was decided and is not in place yet. */
export function isRestorePending(rootDir: string): boolean {
  const { pending, planIn } = restoreFolders(rootDir)
  return existsSync(planIn(pending))
}

/**
 * Puts a decided restore in place, also one that was interrupted while it did. The caller holds the
 * lock of the store's folder.
 */
export function putInPlace(rootDir: string): void {
  const { pending, stateIn, planIn } = restoreFolders(rootDir)
  const plan = JSON.parse(readFileSync(planIn(pending), 'utf8')) as RestorePlan
  const kept = new Set([...plan.names, ...(plan.withKey ? [] : [keyName])])
  for (const name of presentState(rootDir).filter((name) => !kept.has(name)))
    rmSync(join(rootDir, name), { recursive: true, force: true })
  for (const name of plan.names) {
    const staged = join(stateIn(pending), name)
    if (!existsSync(staged)) continue
    rmSync(join(rootDir, name), { recursive: true, force: true })
    renameSync(staged, join(rootDir, name))
  }
  replaceStore(plan)
  for (const folder of [rootDir, plan.cachePath]) syncFolder(folder)
  rmSync(planIn(pending))
  rmSync(pending, { recursive: true })
}

/** The former log must be gone before there is a database that it does not belong to. */
function replaceStore({ cachePath, hasStore }: RestorePlan): void {
  const { database, rest, restored } = databaseFiles(cachePath)
  if (hasStore && !existsSync(restored)) return
  for (const path of rest) rmSync(path, { force: true })
  if (hasStore) renameSync(restored, database)
  else rmSync(database, { force: true })
}

/** Names of the hub's state in its folder, without the store. */
export const presentState = (rootDir: string): readonly string[] =>
  readdirSync(rootDir, { withFileTypes: true })
    .filter((entry) => entry.name === 'pki' || (entry.isFile() && isStatePath(entry.name)))
    .map(({ name }) => name)

/** Finishes a restore that was interrupted. Returns whether there was one. */
export function finishRestore(rootDir: string): boolean {
  if (!isRestorePending(rootDir)) return false
  const { pending, planIn } = restoreFolders(rootDir)
  const { cachePath } = JSON.parse(readFileSync(planIn(pending), 'utf8')) as RestorePlan
  using _held = lockDirectory(cachePath)
  putInPlace(rootDir)
  return true
}
