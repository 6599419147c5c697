import { join } from 'node:path'
import pino from 'pino'
import t from 'tap'
import { keepProcessAlive } from '../../../src/base/clock.ts'
import { storedKey } from '../../../src/base/stored-key.ts'
import { createMetrics } from '../../../src/metrics/metrics.ts'
import { Segment } from '../../../src/hub/store/log/segments.ts'
import { Health } from '../../../src/hub/wiring/health.ts'
import { storeOf } from '../../../src/hub/wiring/store.ts'
import { changed, collection, head, object, replace } from '../../contracts/object-store.ts'
import { rootFolder } from '../../kit/root-folder.ts'
import { until } from '../../kit/until.ts'

void t.test('a disk that syncs nothing is reported until it takes a write', async (t) => {
  const alive = keepProcessAlive()
  t.teardown(() => alive[Symbol.dispose]())
  const directory = rootFolder(t)
  const health = new Health()
  await using store = await storeOf({
    config: { cachePath: join(directory, 'cache'), cacheMaxBytes: 64 << 20 },
    keys: { sealing: { reveal: () => storedKey(join(directory, 'store.key')) } },
    metrics: createMetrics(),
    health,
    log: pino({ enabled: false }),
  } as unknown as Parameters<typeof storeOf>[0])
  await replace(store, collection(), head(5), [object('a', 1), object('b', 2)])
  const sync = Reflect.get(Segment.prototype, 'sync') as Segment['sync']
  t.teardown(() => (Segment.prototype.sync = sync))
  Segment.prototype.sync = () => Promise.reject(new Error('EIO'))
  await t.rejects(store.apply(collection(), [changed('DELETED', object('b', 6))]))
  await until('the report', () => health.storeFailure !== undefined)
  t.match(health.storeFailure, /the disk refuses writes/)
})
