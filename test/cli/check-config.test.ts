import t from 'tap'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkConfig } from '../../src/cli/check-config.ts'
import { rootFolder } from '../kit/root-folder.ts'
import { laterLog } from '../kit/log-on-disk.ts'

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
  const cache = join(rootDir, 'cache')
  writeFileSync(join(cache, 'objects.db'), '')
  t.match(
    await check(),
    { code: 0, err: 'start sets it aside' },
    'with the store of an earlier release',
  )
  laterLog(cache)
  const refused = await check()
  t.equal(refused.code, 2)
  t.match(
    refused.err,
    `${cache}: its log has the format 1000, and this release reads formats up to`,
  )
  t.match(refused.err, 'move the files away and begin with an empty cache')
})
