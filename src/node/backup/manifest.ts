import { MalformedArchive } from './tar.ts'

/** The archive's first file, which describes the others. */
export const manifestName = 'manifest.json'
/** The store in the archive. */
export const storeName = 'cache/objects.db'
/** The key that seals Secrets and tokens, in the hub's folder. */
export const keyName = 'seal.key'

const mostFiles = 1000
/** Of a file other than the store; the files of the hub's folder have some kilobytes. */
export const mostBytes = 64 << 20
export const mostManifestBytes = 1 << 20

export interface BackupManifest {
  readonly format: 1
  /** The release that made it. */
  readonly release: string
  readonly node: string
  /** ISO 8601. */
  readonly madeAt: string
  /** The schema version of the store; absent: there was none. */
  readonly schema?: number
  /** False: the key was left out, and is to stay as it is on the node. */
  readonly withKey: boolean
  readonly files: readonly BackupFile[]
  /** Links beside their targets, as certificates are rotated. */
  readonly links: readonly { readonly path: string; readonly target: string }[]
}

export interface BackupFile {
  /** Relative to the hub's folder, but for the store. */
  readonly path: string
  readonly size: number
  readonly sha256: string
}

/** Whether the name is one of a state file: `name`, or `pki/name`; no path leads elsewhere. */
export const isStatePath = (path: string): boolean =>
  /^(?:pki\/)?[A-Za-z0-9][\w.-]{0,79}$/.test(path) && !foreign.has(path)

/** Folders of the hub's folder, and names that are not of the hub's state. */
const foreign = new Set(['pki', 'cache', 'joined', 'compiled', 'restore', 'restore.new'])

/** Throws `MalformedArchive` at anything that no backup has: the archive may be hostile. */
export function parseManifest(text: string): BackupManifest {
  const manifest = parsed(text)
  const { format, release, node, madeAt, schema, withKey, files, links } = manifest
  if (format !== 1)
    throw new MalformedArchive(`its format is ${JSON.stringify(format)}, of another release`)
  if (![release, node, madeAt].every(isText) || typeof withKey !== 'boolean') throw damaged()
  if (schema !== undefined && !(isCount(schema) && schema > 0)) throw damaged()
  if (!Array.isArray(files) || !Array.isArray(links) || files.length > mostFiles) throw damaged()
  const paths = new Set<unknown>()
  for (const file of files as readonly unknown[]) {
    if (!isFile(file) || paths.has(file.path)) throw new MalformedArchive(refused(file))
    paths.add(file.path)
  }
  for (const link of links as readonly unknown[]) {
    if (!isLink(link, paths) || paths.has(link.path)) throw new MalformedArchive(refused(link))
    paths.add(link.path)
  }
  if (paths.has(storeName) !== (schema !== undefined)) throw damaged()
  return manifest as unknown as BackupManifest
}

type Unchecked = { readonly [Key in keyof BackupManifest]?: unknown }

function parsed(text: string): Unchecked {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value
  } catch {
    // Said below.
  }
  throw damaged()
}

const damaged = (): MalformedArchive => new MalformedArchive(`its ${manifestName} is damaged`)

const refused = (entry: unknown): string =>
  `${JSON.stringify(entry)?.slice(0, 200)} is nothing that a backup holds`

const isText = (value: unknown): value is string =>
  typeof value === 'string' && /^[\w.:+-]{1,253}$/.test(value)

const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 0

function isFile(value: unknown): value is BackupFile {
  const { path, size, sha256 } = (value ?? {}) as Partial<Record<keyof BackupFile, unknown>>
  if (typeof path !== 'string' || !isCount(size)) return false
  if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256)) return false
  return path === storeName || (isStatePath(path) && size <= mostBytes)
}

/** A link in `pki/` to a file of the archive beside it. */
function isLink(
  value: unknown,
  paths: ReadonlySet<unknown>,
): value is BackupManifest['links'][number] {
  const { path, target } = (value ?? {}) as { readonly path?: unknown; readonly target?: unknown }
  if (typeof path !== 'string' || typeof target !== 'string') return false
  return isStatePath(path) && path.startsWith('pki/') && paths.has(`pki/${target}`)
}
