import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Coverage, hashesOf, type TestCoverage } from './coverage.ts'
import { mutantsOf } from './places.ts'
import { Trials } from './trial.ts'
import { filesOf, Workspace } from './workspace.ts'

const least = `export function least(a: number, b: number): number {
  if (a === 7) return 7
  return a < b ? a : b
}
`

const asserting = (...lines: string[]): string =>
  ["import { equal } from 'node:assert'", "import { least } from '../src/least.ts'", ...lines].join(
    '\n',
  )

/** A repository of one function and its tests. */
function repository(t: Test, tests: Readonly<Record<string, string>>) {
  const root = t.testdir({
    'package.json': '{ "type": "module" }',
    node_modules: {},
    src: { 'least.ts': least },
    test: tests,
  })
  execFileSync('git', ['init', '--quiet'], { cwd: root })
  const files = filesOf(root)
  const workspace = new Workspace(root, files)
  t.teardown(() => workspace[Symbol.dispose]())
  return { cache: join(root, '.cache'), hashes: hashesOf(root, files), workspace }
}

void t.test(
  'a fault is tried on the tests that execute it, and killed by one that sees it',
  async (t) => {
    const { cache, hashes, workspace } = repository(t, {
      'blind.test.ts': asserting('least(1, 2)'),
      'least.test.ts': asserting(
        "import { execFileSync } from 'node:child_process'",
        `const other = "import('./src/least.ts').then((of) => console.log(of.least(1, 2), of.least(2, 1)))"`,
        "equal(execFileSync(process.execPath, ['-e', other], { encoding: 'utf8' }), '1 1\\n')",
      ),
      'red.test.ts': asserting('equal(least(1, 2), 2)'),
    })
    const coverage = new Coverage(cache, hashes)
    const measured: TestCoverage[] = []
    for (const name of ['blind', 'least', 'red'])
      measured.push(await coverage.measure(`test/${name}.test.ts`, workspace))
    t.strictSame(
      measured.map(({ test, passed }) => `${test} ${passed}`),
      ['test/blind.test.ts true', 'test/least.test.ts true', 'test/red.test.ts false'],
    )
    t.ok(coverage.known('test/blind.test.ts'), 'kept for the next run')
    t.notOk(coverage.known('test/red.test.ts'), 'but none that is red')

    const green = new Trials(
      cache,
      measured.filter(({ passed }) => passed),
      60_000,
    )
    const fates: Record<string, string> = {}
    for (const mutant of mutantsOf('src/least.ts', least)) {
      const { fate, by, covering } = await green.try(mutant, workspace)
      fates[mutant.id.replace('src/least.ts:', '')] = `${fate} ${by ?? ''} of ${covering}`
    }
    t.strictSame(fates, {
      '1:53:no-body': 'killed test/least.test.ts of 2',
      '2:7:negated': 'killed test/least.test.ts of 2',
      '2:7:no-guard': 'survived  of 2',
      '2:13:number': 'survived  of 2',
      '2:23:number': 'not reached  of 0',
      '3:15:negated': 'killed test/least.test.ts of 2',
      '3:12:boundary': 'survived  of 2',
    })
    t.equal(workspace.read('src/least.ts'), least, 'the source is as it was')

    const [wrong] = mutantsOf('src/least.ts', least)
    const ofBlind = await green.try({ ...wrong!, test: 'test/blind.test.ts' }, workspace)
    t.match(ofBlind, { fate: 'survived', covering: 1 }, 'a test that it names is tried alone')
  },
)

void t.test('a test that does not end is ended, with all that it has started', async (t) => {
  const { workspace } = repository(t, {
    'endless.test.ts': `
import { spawn } from 'node:child_process'
const endless = ['-e', 'require("node:net").connect(Number(process.env.PORT), "127.0.0.1")']
spawn(process.execPath, endless, { detached: true, stdio: 'ignore' })
setInterval(() => {}, 1000)`,
  })
  const server = createServer()
  t.teardown(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const connected = once(server, 'connection') as Promise<[Socket]>
  const env = { PORT: String((server.address() as AddressInfo).port) }
  const running = workspace.run('test/endless.test.ts', { limitMs: 3000, env })
  const [socket] = await connected
  const gone = once(socket.on('error', () => undefined).resume(), 'close')
  t.equal((await running).outcome, 'timed out')
  await gone
})
