import t from 'tap'
import { spawnSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'

interface Folder {
  testdir(content: Record<string, string>): string
}

/** What a run of one file comes to. */
function run(t: Folder, text: string, ...flags: readonly string[]) {
  const file = join(t.testdir({ 'a.test.ts': text }), 'a.test.ts')
  const { status, stdout } = spawnSync(
    process.execPath,
    ['test/tiers/run.ts', 'fast', '--reporter=tap', ...flags, file],
    { encoding: 'utf8' },
  )
  return { status, lines: stdout.trimEnd().split('\n') }
}

const test = (body: string): string => `import t from 'tap'\nt.test('a sentence', ${body})\n`
const passes = test('async (t) => t.ok(true)')

void t.test('a run ends with its count, and with 0 where all have passed', async (t) => {
  const { status, lines } = run(t, passes)
  t.equal(status, 0)
  t.equal(lines.at(-1), '1 passed, 0 failed')
  t.notOk(lines.some((line) => line.includes('processor')))
})

void t.test('a test that fails fails the run', async (t) => {
  const { status, lines } = run(t, test('async (t) => t.equal(1, 2)'))
  t.equal(status, 1)
  t.equal(lines.at(-1), '0 passed, 1 failed')
})

void t.test('a test that passes without an assertion fails the run, and is named', async (t) => {
  const { status, lines } = run(t, `${passes}t.test('nothing', async () => {})\n`)
  t.equal(status, 1)
  t.match(lines.at(-2), /^PASSED WITHOUT AN ASSERTION: .*a\.test\.ts: nothing$/)
  t.equal(lines.at(-1), '1 passed, 1 failed')
})

void t.test('a folder that stays in the checkout fails the run, and is named', async (t) => {
  const leaves = `import { mkdirSync } from 'node:fs'
    t.test('leaves', async (t) => t.ok(mkdirSync(t.testdirName, { recursive: true })))
  `
  const { status, lines } = run(t, `${passes}${leaves}`)
  t.equal(status, 1)
  t.equal(lines.at(-1), '2 passed, 1 failed')
  const left = /^LEFT BEHIND: (.+a\.test\.ts-leaves)$/.exec(lines.at(-2) ?? '')?.[1] ?? ''
  t.ok(existsSync(left), `the folder is named: ${lines.at(-2)}`)
  rmSync(left, { recursive: true })
  const fails = test('async (t) => t.equal(1, 2)').replace(/^import.*/, '')
  const again = run(t, `${passes}${leaves}${fails}`)
  t.equal(again.lines.at(-1), '2 passed, 1 failed', 'a run that fails says why, and no more')
  rmSync(left, { recursive: true })
})

void t.test('what is skipped is said in a line of its own, with the reason', async (t) => {
  const skipped = "t.test('more', { skip: 'no control plane' }, async (t) => t.ok(true))\n"
  const { status, lines } = run(t, `${passes}${skipped}`)
  t.equal(status, 0)
  t.equal(lines.at(-2), 'NOT RUN: 1 tests: no control plane')
  t.equal(lines.at(-1), '1 passed, 0 failed, 1 skipped')
})

void t.test(
  'on request a run says what its folders took',
  { skip: process.platform === 'linux' ? false : '/proc is read' },
  async (t) => {
    const { lines } = run(t, passes, '--timings', 'test/tiers/groups.test.ts')
    const taken = (start: string): number => {
      const line = lines.find((each) => each.startsWith(start))
      return Number(/^.+ 1 +[\d.]+ +([\d.]+)$/.exec(line ?? '')?.[1])
    }
    t.ok(taken('test/tiers ') > 0)
    t.ok(lines.some((line) => /^the run +1 +[\d.]+ +[\d.]+$/.test(line)))
  },
)
