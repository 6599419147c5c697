import t from 'tap'
import { revealingOptions } from '../../src/cli/hardened-process.ts'

void t.test('Node options that reveal memory are found in any notation', (t) => {
  const found = revealingOptions([
    '--max-semi-space-size=4',
    '--inspect=0.0.0.0:9229',
    '--disable-sigusr1',
    '--report_on_fatalerror',
    '',
    '"--heapsnapshot-signal=SIGUSR2"',
    '--cpu-prof',
  ])
  t.strictSame(found, [
    '--inspect=0.0.0.0:9229',
    '--report_on_fatalerror',
    '"--heapsnapshot-signal=SIGUSR2"',
    '--cpu-prof',
  ])
  t.end()
})
