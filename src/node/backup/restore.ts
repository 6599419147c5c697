import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { writeDurably, writeDurablySync } from '../../base/durable-file.ts'
import { makeSyncedFolder, syncFolder } from '../../base/folder.ts'
import { regularFile } from '../../base/regular-file.ts'
import { checkCopy, databaseFiles, lockDirectory } from '../../hub/store/sqlite/copy.ts'
import {
  manifestName,
  mostManifestBytes,
  parseManifest,
  storeName,
  type BackupFile,
  type BackupManifest,
} from './manifest.ts'
import {
  isRestorePending,
  presentState,
  putInPlace,
  restoreFolders,
  type RestorePlan,
} from './pending-restore.ts'
import { chunksOf, MalformedArchive, tarEntries, type TarEntry } from './tar.ts'

export interface RestoreOptions {
  readonly rootDir: string
  readonly cachePath: string
  readonly node: string
  /** Takes the archive of another node. */
  readonly force: boolean
  /** Replaces state that is there. */
  readonly replace: boolean
}

/** The archive is not for this node, or the node is not for it. */
class CannotRestore extends Error {
  readonly code = 'CANNOT_RESTORE'
}

/**
 * Makes the state in the archive `file` that of this node's hub. Rejects, with everything as it
 * was, where the archive is damaged, of another node or of a later release, and where a hub runs or
 * has state here. A crash leaves the former state or the restored one, never a part of each.
 */
export async function restore(file: string, options: RestoreOptions): Promise<BackupManifest> {
  const { rootDir, cachePath, node, force } = options
  await using archive = await opened(file)
  const entries = tarEntries(archive)
  const manifest = await readManifest(archive, entries)
  if (manifest.node !== node && !force) {
    throw new CannotRestore(
      `it is of the node ${manifest.node}, and this is ${node}: --node-name says which node this is, --force takes it anyway`,
    )
  }
  for (const folder of [rootDir, cachePath]) makeSyncedFolder(folder, 0o700)
  using _held = lockDirectory(cachePath)
  if (isRestorePending(rootDir)) putInPlace(rootDir)
  const { database, restored } = databaseFiles(cachePath)
  if (!options.replace && (presentState(rootDir).length > 0 || existsSync(database))) {
    throw new CannotRestore(
      `a hub has state in ${rootDir}: back it up, and give --replace to have the archive's in its place`,
    )
  }
  const { staging, pending } = restoreFolders(rootDir)
  try {
    await stage(archive, entries, manifest, options)
  } catch (cause) {
    for (const path of [staging, restored, `${restored}.new`])
      rmSync(path, { recursive: true, force: true })
    throw cause
  }
  rmSync(pending, { recursive: true, force: true })
  renameSync(staging, pending)
  syncFolder(rootDir)
  putInPlace(rootDir)
  return manifest
}

async function opened(file: string): Promise<FileHandle> {
  using found = regularFile(file)
  if (found === undefined) throw new CannotRestore('there is no such file')
  return await open(`/proc/self/fd/${found.handle}`, 'r')
}

async function readManifest(
  archive: FileHandle,
  entries: AsyncGenerator<TarEntry>,
): Promise<BackupManifest> {
  const { value: first } = await entries.next()
  if (first?.name !== manifestName || first.size > mostManifestBytes)
    throw new MalformedArchive(`it does not begin with a ${manifestName}`)
  const chunks = await Array.fromAsync(chunksOf(archive, first))
  return parseManifest(Buffer.concat(chunks).toString())
}

/** Writes everything beside its place, and checks it. */
async function stage(
  archive: FileHandle,
  entries: AsyncGenerator<TarEntry>,
  manifest: BackupManifest,
  { rootDir, cachePath }: RestoreOptions,
): Promise<void> {
  const { staging, stateIn, planIn } = restoreFolders(rootDir)
  const { restored } = databaseFiles(cachePath)
  for (const path of [staging, restored]) rmSync(path, { recursive: true, force: true })
  const state = stateIn(staging)
  makeSyncedFolder(state, 0o700)
  for (const file of manifest.files) {
    const { value: entry } = await entries.next()
    if (entry?.name !== file.path || entry.size !== file.size)
      throw new MalformedArchive(`${file.path} is missing in it, or has another size`)
    const to = file.path === storeName ? restored : join(state, file.path)
    await writeDurably(to, (staged) => copyChecked(archive, entry, { file, staged }))
  }
  if ((await entries.next()).done !== true)
    throw new MalformedArchive(`it holds more than its ${manifestName} names`)
  if (manifest.schema !== undefined && checkCopy(restored, 'the archive') !== manifest.schema)
    throw new MalformedArchive('its store is not the one that its manifest describes')
  for (const { path, target } of manifest.links) symlinkSync(target, join(state, path))
  if (existsSync(join(state, 'pki'))) syncFolder(join(state, 'pki'))
  else mkdirSync(join(state, 'pki'), { mode: 0o700 })
  const plan: RestorePlan = {
    cachePath,
    hasStore: manifest.schema !== undefined,
    withKey: manifest.withKey,
    names: ['pki', ...manifest.files.map(({ path }) => path).filter((path) => !path.includes('/'))],
  }
  writeDurablySync(planIn(staging), JSON.stringify(plan))
  syncFolder(state)
}

async function copyChecked(
  archive: FileHandle,
  entry: TarEntry,
  { file, staged }: { readonly file: BackupFile; readonly staged: FileHandle },
): Promise<void> {
  const sum = createHash('sha256')
  for await (const chunk of chunksOf(archive, entry)) {
    sum.update(chunk)
    await staged.appendFile(chunk)
  }
  if (sum.digest('hex') !== file.sha256)
    throw new MalformedArchive(`${file.path} in it is damaged (its sha256 is another)`)
}
