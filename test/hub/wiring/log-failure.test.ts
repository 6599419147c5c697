import t from 'tap'
import { createLog } from '../../../src/cli/log.ts'
import { logFailure } from '../../../src/hub/wiring/log-failure.ts'

void t.test('a programming error is an error in the log, whatever it interrupted', async (t) => {
  const lines: string[] = []
  const log = createLog('debug', { write: (line) => lines.push(line) })
  logFailure(log, 'debug', { err: new Error('reset by peer') }, 'an answer broke off')
  logFailure(log, 'debug', { err: new TypeError('x is not a function') }, 'an answer broke off')
  const levels = lines.map((line) => (JSON.parse(line) as { level: string }).level)
  t.strictSame(levels, ['debug', 'error'])
  t.match(lines[1], /stack.*log-failure\.test/)
})
