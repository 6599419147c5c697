import { pbkdf2 } from 'node:crypto'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import t from 'tap'
import { LogFolder } from '../../../../src/hub/store/log/segments.ts'
import { rootFolder } from '../../../kit/root-folder.ts'

/** Work for libuv's pool. */
const work = (): Promise<Buffer> => promisify(pbkdf2)('a', 'b', 200_000, 32, 'sha256')

void t.test('a segment begun under the number of one that was taken back stays', async (t) => {
  const folder = new LogFolder(rootFolder(t))
  t.teardown(() => folder.close())
  const busy = Array.from({ length: 8 }, work)
  folder.segment(1).create()
  await folder.remove(1)
  const { path } = folder.segment(1)
  t.notOk(existsSync(path))
  folder.segment(1).create()
  await Promise.all([...busy, work()])
  t.ok(existsSync(path))
  t.ok(folder.isInPlace())
})
