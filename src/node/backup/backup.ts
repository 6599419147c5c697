import { createHash, hash } from 'node:crypto'
import { readdirSync, readlinkSync, rmSync } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { now } from '../../base/clock.ts'
import { writeDurably } from '../../base/durable-file.ts'
import { ownVersion } from '../../base/own-version.ts'
import { readOwnFile } from '../../base/own-file.ts'
import { copyDatabase } from '../../hub/store/sqlite/copy.ts'
import {
  isStatePath,
  keyName,
  manifestName,
  mostBytes,
  storeName,
  type BackupFile,
  type BackupManifest,
} from './manifest.ts'
import { chunksOf, tarEnd, tarHeader, tarPadding } from './tar.ts'

export interface BackupOptions {
  readonly rootDir: string
  /** The folder of the store. */
  readonly cachePath: string
  readonly node: string
  /** Where the store is copied to meanwhile; absent: beside the archive. */
  readonly copy?: string | undefined
  /** Leaves out the key that seals Secrets and tokens in the store. */
  readonly withoutKey: boolean
}

/**
 * Writes the state of a node's hub into the archive `file`, readable by its owner only, also while
 * the hub runs. Replaces the file whole or not at all. Rejects where a part cannot be read, or the
 * store is damaged.
 */
export async function backUp(file: string, options: BackupOptions): Promise<BackupManifest> {
  const { rootDir, cachePath, node, withoutKey, copy = `${file}.store` } = options
  rmSync(copy, { force: true })
  try {
    // Files first: a hub commits before it writes them, and none may be ahead of the store.
    const state = stateFiles(rootDir).filter(({ path }) => !(withoutKey && path === keyName))
    const schema = await copyDatabase(cachePath, copy)
    if (state.length === 0 && schema === undefined)
      throw new Error(`${rootDir} holds no state of a hub`)
    await using store = schema === undefined ? undefined : await open(copy, 'r')
    const manifest: BackupManifest = {
      format: 1,
      release: ownVersion(),
      node,
      madeAt: new Date(now()).toISOString(),
      ...(schema !== undefined && { schema }),
      withKey: state.some(({ path }) => path === keyName),
      files: [
        ...state.map(({ path, content }) => described(path, content)),
        ...(store ? [await describedStore(store)] : []),
      ],
      links: linksIn(rootDir, new Set(state.map(({ path }) => path))),
    }
    await writeDurably(file, (archive) => write(archive, manifest, { state, store }))
    return manifest
  } finally {
    rmSync(copy, { force: true })
    rmSync(`${file}.new`, { force: true })
  }
}

interface StateFile {
  readonly path: string
  readonly content: Buffer
}

/** Reports of SIGQUIT, locks and remains of interrupted writes are no state. */
const leftOut = /\.(?:new|lock|report\.json)$/

function stateFiles(rootDir: string): readonly StateFile[] {
  return ['', 'pki/'].flatMap((folder) =>
    entriesOf(join(rootDir, folder))
      .filter((entry) => entry.isFile() && !leftOut.test(entry.name))
      .map(({ name }) => `${folder}${name}`)
      .filter(isStatePath)
      .sort()
      .flatMap((path) => {
        const content = readOwnFile(join(rootDir, path))
        if (content === undefined) return []
        if (content.byteLength > mostBytes) throw new Error(`${join(rootDir, path)} is too large`)
        return [{ path, content }]
      }),
  )
}

const entriesOf = (folder: string) => {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw cause
  }
}

/** Links of certificates that lead to a file of the backup. */
function linksIn(rootDir: string, files: ReadonlySet<string>): BackupManifest['links'] {
  const folder = join(rootDir, 'pki')
  return entriesOf(folder)
    .filter((entry) => entry.isSymbolicLink() && isStatePath(`pki/${entry.name}`))
    .map(({ name }) => ({ path: `pki/${name}`, target: readlinkSync(join(folder, name)) }))
    .filter(({ target }) => files.has(`pki/${target}`))
}

const described = (path: string, content: Buffer): BackupFile => ({
  path,
  size: content.byteLength,
  sha256: hash('sha256', content),
})

async function describedStore(store: FileHandle): Promise<BackupFile> {
  const { size } = await store.stat()
  const sum = createHash('sha256')
  for await (const chunk of chunksOf(store, { offset: 0, size })) sum.update(chunk)
  return { path: storeName, size, sha256: sum.digest('hex') }
}

async function write(
  archive: FileHandle,
  manifest: BackupManifest,
  {
    state,
    store,
  }: { readonly state: readonly StateFile[]; readonly store: FileHandle | undefined },
): Promise<void> {
  const at = Date.parse(manifest.madeAt)
  const add = async (path: string, content: Buffer): Promise<void> => {
    const { byteLength: size } = content
    await archive.appendFile(Buffer.concat([tarHeader(path, size, at), content, tarPadding(size)]))
  }
  await add(manifestName, Buffer.from(`${JSON.stringify(manifest, undefined, 2)}\n`))
  for (const { path, content } of state) await add(path, content)
  const size = manifest.files.find(({ path }) => path === storeName)?.size
  if (store && size !== undefined) {
    await archive.appendFile(tarHeader(storeName, size, at))
    for await (const chunk of chunksOf(store, { offset: 0, size })) await archive.appendFile(chunk)
    await archive.appendFile(tarPadding(size))
  }
  await archive.appendFile(tarEnd())
}
