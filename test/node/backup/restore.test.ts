import t from 'tap'
import { spawnSync } from 'node:child_process'
import { hash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { backUp } from '../../../src/node/backup/backup.ts'
import { finishRestore, isRestorePending } from '../../../src/node/backup/pending-restore.ts'
import { restore } from '../../../src/node/backup/restore.ts'
import { tarEnd, tarHeader, tarPadding } from '../../../src/node/backup/tar.ts'
import { lockDirectory } from '../../../src/hub/store/sqlite/copy.ts'
import { rootFolder } from '../../kit/root-folder.ts'
import type { Teardown } from '../../kit/wire/wire.ts'
import { makeState, stateIn } from './state.ts'

t.setTimeout(300_000)

const node = 'edge-1'

interface Prepared {
  readonly folder: string
  readonly archive: string
  /** The state in the archive. */
  readonly backedUp: Readonly<Record<string, string>>
  /** A folder with another state. */
  readonly rootDir: string
}

async function prepared(t: Teardown, withoutKey = false): Promise<Prepared> {
  const folder = rootFolder(t)
  const source = makeState(join(folder, 'source'), 'old')
  const archive = join(folder, 'edge-1.tar')
  await backUp(archive, { rootDir: source, cachePath: join(source, 'cache'), node, withoutKey })
  const rootDir = makeState(join(folder, 'state'), 'new')
  return { folder, archive, backedUp: stateIn(source), rootDir }
}

const options = (rootDir: string) => ({
  rootDir,
  cachePath: join(rootDir, 'cache'),
  node,
  force: false,
  replace: true,
})

/** What a restore leaves: the files of a join are the node's. */
const restoredOver = (backedUp: object, before: Readonly<Record<string, string>>) => ({
  ...backedUp,
  'joined/record.json': before['joined/record.json'],
})

void t.test('a restore replaces the whole state by the backup', async (t) => {
  const { archive, backedUp, rootDir } = await prepared(t)
  t.equal(statSync(archive).mode & 0o777, 0o600)
  const before = stateIn(rootDir)
  await restore(archive, options(rootDir))
  t.strictSame(stateIn(rootDir), restoredOver(backedUp, before))
  t.strictSame(readdirSync(join(rootDir, 'cache')).toSorted(), ['lock.db', 'objects.db'])
})

void t.test('an archive without the key leaves the key of the node', async (t) => {
  const { archive, backedUp, rootDir } = await prepared(t, true)
  const before = stateIn(rootDir)
  t.notMatch(readFileSync(archive).toString('latin1'), 'seal.key old')
  await restore(archive, options(rootDir))
  const expected = { ...restoredOver(backedUp, before), 'seal.key': before['seal.key'] }
  t.strictSame(stateIn(rootDir), expected)
})

void t.test('a refused restore gives the reason, and changes nothing', async (t) => {
  const { folder, archive, rootDir } = await prepared(t)
  const before = stateIn(rootDir)
  const refused = async (why: RegExp, changes: object = {}, file = archive): Promise<void> => {
    await t.rejects(restore(file, { ...options(rootDir), ...changes }), { message: why })
    t.strictSame(stateIn(rootDir), before)
    t.notOk(existsSync(join(rootDir, 'cache', 'objects.db.restored')))
  }
  await refused(/it is of the node edge-1, and this is edge-2: .*--force/, { node: 'edge-2' })
  await refused(/a hub has state in .*--replace/, { replace: false })
  await refused(/there is no such file/, {}, join(folder, 'none.tar'))
  {
    using _hub = lockDirectory(join(rootDir, 'cache'))
    await refused(/another hub, process \d+, uses .*: stop it/)
  }
  const later = makeState(join(folder, 'later'), 'later')
  const cachePath = join(later, 'cache')
  const from = { rootDir: later, cachePath, node, withoutKey: false }
  const file = join(folder, 'later.tar')
  new DatabaseSync(join(cachePath, 'objects.db')).exec('PRAGMA user_version = 9')
  await backUp(file, from).catch(() => undefined)
  t.notOk(existsSync(file), 'a store of a later release is not backed up by this one')
  const text = readFileSync(archive, 'latin1')
  const at = text.indexOf('SQLite format 3')
  const bytes = readFileSync(archive)
  bytes.writeUInt32BE(1000, at + 60)
  writeFileSync(file, resummed(bytes, at))
  await refused(/it has schema version 1000, and this release knows versions up to/, {}, file)
  await restore(archive, { ...options(rootDir), node: 'edge-2', force: true })
  t.equal(stateIn(rootDir)['store'], 'old')
})

/** The archive with the checksum of its store made to fit, as who changes an archive would. */
function resummed(archive: Buffer, at: number): Buffer {
  const size = parseInt(archive.toString('latin1', at - 512 + 124, at - 512 + 135), 8)
  const sum = hash('sha256', archive.subarray(at, at + size))
  const manifest = archive.toString('latin1', 512, 8192)
  const old = /"path": "cache\/objects.db",\s+"size": \d+,\s+"sha256": "([0-9a-f]+)"/.exec(manifest)
  archive.write(sum, 512 + (old?.index ?? 0) + (old?.[0].indexOf(old[1] ?? '') ?? 0))
  return archive
}

interface HostileFile {
  readonly name: string
  readonly content?: string
  /** Changes the header before its checksum is made anew. */
  readonly header?: (block: Buffer) => void
}

/** An archive whose manifest names what it holds, however hostile. */
function hostile(files: readonly HostileFile[], changes: object = {}): Buffer {
  const described = files.map(({ name, content = 'x' }) => ({
    path: name,
    size: content.length,
    sha256: hash('sha256', content),
  }))
  const manifest = { format: 1, release: '0.1.0', node, madeAt: '2026-01-01T00:00:00.000Z' }
  const all = { ...manifest, withKey: false, files: described, links: [], ...changes }
  const entries: HostileFile[] = [{ name: 'manifest.json', content: JSON.stringify(all) }, ...files]
  return Buffer.concat([
    ...entries.flatMap(({ name, content = 'x', header }) => {
      const block = tarHeader(name, content.length, 0)
      header?.(block)
      block.fill(' ', 148, 156)
      const sum = block.reduce((one, byte) => one + byte, 0)
      block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
      return [block, Buffer.from(content), tarPadding(content.length)]
    }),
    tarEnd(),
  ])
}

void t.test('damaged and hostile archives are refused before anything is replaced', async (t) => {
  const { folder, archive, rootDir } = await prepared(t)
  const before = stateIn(rootDir)
  const good = readFileSync(archive)
  const flipped = Buffer.from(good)
  const at = good.indexOf('proofs.json old')
  flipped[at] = 0x20
  const link = (block: Buffer): void => void block.write('2/etc', 156)
  const plain = [{ name: 'proofs.json' }]
  const cases: Readonly<Record<string, Buffer>> = {
    'a flipped bit': flipped,
    'an early end': good.subarray(0, good.length - 2048),
    'no archive': Buffer.from('x'.repeat(4096)),
    nothing: Buffer.alloc(0),
    'a folder above': hostile([{ name: '../escaped' }]),
    'an absolute path': hostile([{ name: join(folder, 'escaped') }]),
    'a folder of a join': hostile([{ name: 'joined/record.json' }]),
    'a name twice': hostile([...plain, ...plain]),
    'a link for a file': hostile([{ name: 'proofs.json', header: link }]),
    'a link that leads elsewhere': hostile([{ name: 'pki/a' }], {
      links: [{ path: 'pki/b', target: '../../escaped' }],
    }),
    'a link outside of pki': hostile([{ name: 'pki/a' }], { links: [{ path: 'b', target: 'a' }] }),
    'another size': hostile([
      { name: 'proofs.json', header: (block) => void block.write('00000000007', 124) },
    ]),
    'a size beyond the archive': hostile([
      { name: 'proofs.json', header: (block) => void block.write('77777777777', 124) },
    ]),
    'more than the manifest names': hostile(plain, { files: [] }),
    'a store that is none': hostile([{ name: 'cache/objects.db' }], { schema: 1 }),
    'another format': hostile(plain, { format: 2 }),
  }
  for (const [what, bytes] of Object.entries(cases)) {
    const file = join(folder, 'hostile.tar')
    writeFileSync(file, bytes)
    await t.rejects(restore(file, options(rootDir)), what)
    t.strictSame(stateIn(rootDir), before, what)
    t.notOk(isRestorePending(rootDir), what)
  }
  t.notOk(readdirSync(folder).includes('escaped'))
  const file = join(folder, 'plain.tar')
  writeFileSync(file, hostile(plain, { withKey: true }))
  const manifest = await restore(file, options(rootDir))
  t.equal(manifest.files.length, 1, 'such an archive is taken where nothing is wrong with it')
})

void t.test('a restore killed at any step leaves the old or the new state', async (t) => {
  const { folder, archive, backedUp, rootDir } = await prepared(t)
  const before = stateIn(rootDir)
  const after = restoredOver(backedUp, before)
  const kept = join(folder, 'kept')
  cpSync(rootDir, kept, { recursive: true, verbatimSymlinks: true })
  const script = join(import.meta.dirname, 'killed-restore.ts')
  let [former, restored] = [0, 0]
  for (let change = 0; ; change++) {
    rmSync(rootDir, { recursive: true })
    cpSync(kept, rootDir, { recursive: true, verbatimSymlinks: true })
    const child = spawnSync(process.execPath, [script, String(change), archive, rootDir])
    const isWhole = child.status === 0
    if (!isWhole) t.equal(child.signal, 'SIGKILL', String(child.stderr))
    // What the next start does.
    if (finishRestore(rootDir) || isWhole) {
      t.strictSame(stateIn(rootDir), after, `change ${change}`)
      restored += 1
    } else {
      const { store } = stateIn(rootDir)
      if (store === 'old') t.strictSame(stateIn(rootDir), after, `change ${change}`)
      else t.match(stateIn(rootDir), before, `change ${change}`)
      former += 1
    }
    await restore(archive, options(rootDir))
    t.strictSame(stateIn(rootDir), after, `again after change ${change}`)
    if (isWhole) break
  }
  t.ok(former > 5 && restored > 5, `${former} before the decision, ${restored} after`)
})
