// npm run metrics -- [METRIC...]: each metric stands still in turn, and the tests that
// docs/metrics-tests.md names for it have to fail.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { pathToFileURL } from 'node:url'
import { join } from 'node:path'
import type { NamedTest } from '../../named-tests.ts'
import { moved } from '../movers.ts'

const preload = pathToFileURL(join(import.meta.dirname, 'preload.ts')).href

/** Whether the test fails while the metric stands still. */
async function notices(metric: string, { file, title }: NamedTest): Promise<boolean> {
  const child = spawn(process.execPath, [file], {
    stdio: 'ignore',
    env: {
      ...process.env,
      NODE_OPTIONS: `--import=${preload}`,
      STILL_METRIC: metric,
      TAP_GREP: RegExp.escape(title),
      TAP_TIMEOUT: '120',
    },
  })
  const [code] = (await once(child, 'exit')) as [number | null]
  return code !== 0
}

const chosen = process.argv.slice(2)
const all = moved().filter(({ metric }) => chosen.length === 0 || chosen.includes(metric))
let unnoticed = 0
for (const { metric, tests } of all) {
  for (const test of tests) {
    const fails = await notices(metric, test)
    if (!fails) unnoticed += 1
    console.log(`${fails ? 'noticed  ' : 'UNNOTICED'}  ${metric}  ${test.file}: ${test.title}`)
  }
}
console.log(`${all.length} metrics stood still, ${unnoticed} tests did not notice`)
process.exitCode = unnoticed === 0 && all.length > 0 ? 0 : 1
