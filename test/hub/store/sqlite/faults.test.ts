import t from 'tap'
import { isOfDisk, reportMaintenance } from '../../../../src/hub/store/sqlite/faults.ts'
import { StoreFailure } from '../../../../src/hub/store/store.ts'

void t.test(
  'a full, read-only, over-quota or broken disk is distinguished from other faults',
  async (t) => {
    const of = (cause: object): boolean => isOfDisk(new StoreFailure('', { cause }))
    for (const code of ['EROFS', 'ENOSPC', 'EDQUOT', 'EIO']) t.ok(of({ code }), code)
    // SQLITE_READONLY, SQLITE_IOERR, SQLITE_FULL; SQLITE_IOERR_FSYNC.
    for (const errcode of [8, 10, 13, 10 + (4 << 8)]) t.ok(of({ errcode }), `${errcode}`)
    for (const cause of [{ code: 'EACCES' }, { errcode: 11 }, { errcode: 1 }, {}])
      t.notOk(of(cause), JSON.stringify(cause))
    t.notOk(isOfDisk(new StoreFailure('')))
  },
)

void t.test('an eviction that the disk refuses is not reported besides', async (t) => {
  const full = new StoreFailure('full', { cause: { code: 'ERR_SQLITE_ERROR', errcode: 13 } })
  reportMaintenance((kind) => t.fail(kind), full)
  const reported: string[] = []
  reportMaintenance((kind) => reported.push(kind), new TypeError('a mistake'))
  t.strictSame(reported, ['maintenance'])
})
