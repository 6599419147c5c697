import t from 'tap'
import { mock } from 'node:test'
import { Mistakes } from '../../../../src/hub/filter/own/mistakes.ts'
import { filtersOfModule, loadTimeoutMs } from '../../../../src/hub/filter/own/module.ts'
import { FilterFolder } from '../../../kit/own-filter.ts'

void t.test('a module that does not load within ten seconds is refused', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const file = new FilterFolder(t).write('waits.mjs', 'await new Promise(() => undefined)\n')
  const mistakes = new Mistakes(file)
  const loading = filtersOfModule(file, 'its-hash', mistakes)
  mock.timers.tick(loadTimeoutMs)
  t.strictSame(await loading, [])
  t.match(mistakes.all, [/has not loaded after 10 s: it waits for something$/])
})
