import t from 'tap'
import { mock } from 'node:test'
import { turn } from '../../../../src/base/clock.ts'
import { tokenHolder } from '../../../../src/api/request/identity.ts'
import { IdleSweep } from '../../../../src/hub/store/sqlite/idle-sweep.ts'

void t.test('a failure of the daily deletion, and of a mark, is reported', async (t) => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  t.teardown(() => mock.timers.reset())
  const cause = new TypeError('a mistake')
  const failed: unknown[] = []
  let kind = ''
  using sweep = new IdleSweep({
    write: async (operation) => {
      kind = operation.kind
      throw cause
    },
    idle: () => [],
    forget: async () => undefined,
    onFailed: (cause) => failed.push(cause),
  })
  mock.timers.tick(60_000)
  await turn()
  t.equal(kind, 'count-day')
  t.strictSame(failed, [cause])
  sweep.used(tokenHolder('x'))
  await turn()
  t.equal(kind, 'mark-used')
  t.strictSame(failed, [cause, cause])
})
