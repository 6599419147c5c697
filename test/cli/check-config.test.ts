import t from 'tap'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { checkConfig } from '../../src/cli/check-config.ts'
import { rootFolder } from '../kit/root-folder.ts'

void t.test('check-config says before a downgrade that it cannot keep the cache', async (t) => {
  const rootDir = rootFolder(t)
  const check = async (): Promise<{ readonly code: number; readonly err: string }> => {
    let said = ''
    const argv = [
      '--server-addr=http://127.0.0.1:1',
      '--bootstrap-mode=anonymous',
      '--node-name=edge-1',
      `--root-dir=${rootDir}`,
    ]
    const code = await checkConfig.run(argv, { out: () => {}, err: (text) => void (said += text) })
    return { code, err: said }
  }
  t.equal((await check()).code, 0, 'without a store')
  mkdirSync(join(rootDir, 'cache'))
  const file = join(rootDir, 'cache', 'objects.db')
  using db = new DatabaseSync(file)
  db.exec('PRAGMA journal_mode = WAL; PRAGMA user_version = 1')
  t.equal((await check()).code, 0, 'with the store of an earlier release')
  db.exec('PRAGMA user_version = 1000')
  const refused = await check()
  t.equal(refused.code, 2)
  t.match(refused.err, `${file} has schema version 1000, and this release knows versions up to`)
  t.match(refused.err, 'move the file away and begin with an empty cache')
})
