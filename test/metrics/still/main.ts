// npm run metrics -- [METRIC...]: each metric stands still in turn, and the tests that
// test/metrics/metrics-tests.md names for it have to fail. Each has to pass while all metrics move.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { pathToFileURL } from 'node:url'
import { join } from 'node:path'
import { preloadVariable } from '../../kit/cluster/plain-node.ts'
import type { NamedTest } from '../../named-tests.ts'
import { moved } from '../movers.ts'

const preload = pathToFileURL(join(import.meta.dirname, 'preload.ts')).href

/** Whether the test passes while a metric of this name stands still, here and in its processes. */
async function passes({ file, title }: NamedTest, metric: string): Promise<boolean> {
  const child = spawn(process.execPath, [file], {
    stdio: 'ignore',
    env: {
      ...process.env,
      NODE_OPTIONS: `--import=${preload}`,
      [preloadVariable]: preload,
      STILL_METRIC: metric,
      TAP_GREP: RegExp.escape(title),
      TAP_TIMEOUT: '120',
    },
  })
  const [code] = (await once(child, 'exit')) as [number | null]
  return code === 0
}

const alone = new Map<string, boolean>()

/** Whether the test passes as it is; one that does not would seem to notice everything. */
async function passesAlone(test: NamedTest): Promise<boolean> {
  const name = `${test.file}: ${test.title}`
  const known = alone.get(name) ?? (await passes(test, 'no_such_metric'))
  alone.set(name, known)
  return known
}

async function outcome(metric: string, test: NamedTest): Promise<string> {
  if (!(await passesAlone(test))) return 'RED      '
  return (await passes(test, metric)) ? 'UNNOTICED' : noticed
}

const noticed = 'noticed  '
const chosen = process.argv.slice(2)
const all = moved().filter(({ metric }) => chosen.length === 0 || chosen.includes(metric))
let unnoticed = 0
for (const { metric, tests } of all) {
  for (const test of tests) {
    const said = await outcome(metric, test)
    if (said !== noticed) unnoticed += 1
    console.log(`${said}  ${metric}  ${test.file}: ${test.title}`)
  }
}
console.log(`${all.length} metrics stood still, ${unnoticed} tests did not notice`)
process.exitCode = unnoticed === 0 && all.length > 0 ? 0 : 1
