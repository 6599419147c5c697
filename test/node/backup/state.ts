import { hash } from 'node:crypto'
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/** Makes a hub's folder that a backup can be made of; `mark` is in each of its files. */
export function makeState(rootDir: string, mark: string): string {
  mkdirSync(join(rootDir, 'pki'), { recursive: true, mode: 0o700 })
  mkdirSync(join(rootDir, 'cache'), { mode: 0o700 })
  mkdirSync(join(rootDir, 'joined'))
  const write = (name: string): void =>
    writeFileSync(join(rootDir, name), `${name} ${mark}`, { mode: 0o600 })
  for (const name of ['seal.key', 'proofs.json', `only-${mark}.json`, 'joined/record.json'])
    write(name)
  for (const name of ['pki/ca.crt', `pki/nodehub-client-${mark}.pem`]) write(name)
  symlinkSync(`nodehub-client-${mark}.pem`, join(rootDir, 'pki/nodehub-client-current.pem'))
  using db = new DatabaseSync(join(rootDir, 'cache', 'objects.db'))
  db.exec(
    `PRAGMA user_version = 1; CREATE TABLE held (mark TEXT); INSERT INTO held VALUES ('${mark}')`,
  )
  return rootDir
}

/** What stands in a hub's folder: contents, links, and the row of its store. */
export function stateIn(rootDir: string): Readonly<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const name of readdirSync(rootDir, { recursive: true, encoding: 'utf8' }).toSorted()) {
    const path = join(rootDir, name)
    const stat = lstatSync(path)
    if (stat.isSymbolicLink()) found[name] = `-> ${readlinkSync(path)}`
    else if (stat.isFile() && !name.startsWith('cache/'))
      found[name] = `${(stat.mode & 0o777).toString(8)} ${hash('sha256', readFileSync(path))}`
  }
  using db = new DatabaseSync(join(rootDir, 'cache', 'objects.db'), { readOnly: true })
  found['store'] = String(db.prepare('SELECT mark FROM held').get()?.['mark'])
  return found
}
