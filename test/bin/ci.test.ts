import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const script = join(import.meta.dirname, '..', '..', '.ci', 'run')

/** What a run of a tier prints, and its status. */
interface TierRun {
  readonly status: number
  readonly out: string
}

const passes = (count: number): TierRun => ({ status: 0, out: `${count} passed, 0 failed` })

const fails = (...files: readonly string[]): TierRun => ({
  status: 1,
  out: [
    ...files.flatMap((file) => [
      `# Subtest: ${file}`,
      '    not ok 1 - it holds',
      `not ok 1 - ${file} # time=5ms`,
    ]),
    `7 passed, ${files.length} failed`,
  ].join('\n'),
})

/**
 * `.ci/run` with an npm that has run these: what it ended with, its last lines, and what it had npm
 * run.
 */
function ci(
  dir: string,
  runs: { readonly fast: readonly TierRun[]; readonly cluster: readonly TierRun[] },
): { status: number | null; lines: readonly string[]; ran: readonly string[] } {
  const bin = join(dir, 'bin')
  for (const folder of [bin, join(dir, '.ci')]) mkdirSync(folder)
  cpSync(script, join(dir, '.ci', 'run'))
  for (const [tier, outputs] of [
    ['test', runs.fast],
    ['test:cluster', runs.cluster],
  ] as const) {
    for (const [at, { status, out }] of outputs.entries())
      writeFileSync(join(bin, `${tier}.${at}`), `cat <<'END'\n${out}\nEND\nexit ${status}\n`)
  }
  // Programs that the script would otherwise install.
  for (const name of ['chromium', 'promtool']) writeFileSync(join(bin, name), '')
  writeFileSync(
    join(bin, 'npm'),
    `#!/bin/sh
      shift 2 # run --silent
      echo "$*" >> ${dir}/ran
      [ "$1" = check ] && exit 0
      at=$(($(grep -c "^$1 " ${dir}/ran) - 1))
      exec sh "${bin}/$1.$at"`,
  )
  for (const name of ['npm', 'chromium', 'promtool']) chmodSync(join(bin, name), 0o755)
  const { status, stdout } = spawnSync(join(dir, '.ci', 'run'), {
    encoding: 'utf8',
    env: { ...process.env, PATH: `${bin}:${process.env['PATH']}` },
  })
  return {
    status,
    lines: stdout.trimEnd().split('\n'),
    ran: readFileSync(join(dir, 'ran'), 'utf8').trimEnd().split('\n'),
  }
}

const flags = '-- --reporter=tap --timings'

void t.test('the last line is the sum of both tiers', (t) => {
  const { status, lines, ran } = ci(t.testdir(), { fast: [passes(7)], cluster: [passes(2)] })
  t.equal(status, 0)
  t.equal(lines.at(-1), '9 passed, 0 failed')
  t.strictSame(ran, [`test ${flags}`, `test:cluster ${flags}`, 'check'])
  t.end()
})

void t.test('a file that failed once and passes alone is named', (t) => {
  const { status, lines, ran } = ci(t.testdir(), {
    fast: [passes(3)],
    cluster: [fails('test/control-plane/a.test.ts'), passes(1)],
  })
  t.equal(status, 0)
  t.equal(lines.at(-1), '10 passed, 0 failed')
  t.ok(lines.includes('ci: failed once, and passed alone: test/control-plane/a.test.ts'))
  t.ok(lines.includes('ci: failed once, and passed alone:     not ok 1 - it holds'))
  t.equal(ran[2], `test:cluster ${flags} --jobs=1 test/control-plane/a.test.ts`)
  t.end()
})

void t.test('a file that fails twice fails the run', (t) => {
  const failed = fails('test/a.test.ts')
  const { status, lines } = ci(t.testdir(), { fast: [failed, failed], cluster: [passes(2)] })
  t.equal(status, 1)
  t.equal(lines.at(-1), '9 passed, 1 failed')
  t.ok(lines.includes('ci: failed:     not ok 1 - it holds'))
  t.notOk(lines.some((line) => line.includes('failed once')))
  t.end()
})

void t.test('a test without an assertion is named at the end', (t) => {
  const without = 'PASSED WITHOUT AN ASSERTION: test/b.test.ts: it holds'
  const out = `${without}\n7 passed, 1 failed`
  const { status, lines } = ci(t.testdir(), { fast: [{ status: 1, out }], cluster: [passes(2)] })
  t.equal(status, 1)
  t.ok(lines.includes(`ci: failed: ${without}`))
  t.end()
})
