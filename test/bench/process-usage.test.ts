import { spawn } from 'node:child_process'
import { once } from 'node:events'
import t from 'tap'
import {
  cpuBetween,
  brkHeapBytesOf,
  parseMemory,
  parseStat,
  secondsSinceStart,
  usageOf,
} from '../../bench/measure/process-usage.ts'

const stat =
  '4242 (a (very) odd name) S 17 4242 4242 0 -1 4194560 3031 99 1 0 150 50 7 3 20 0 11 0 88 1048576 2560 18446744073709551615'

void t.test('times are read behind a name that holds blanks and brackets', async (t) => {
  t.strictSame(parseStat(stat), {
    id: 4242,
    parent: 17,
    ticks: 200,
    childTicks: 10,
    startTicks: 88,
  })
})

void t.test(
  'a process has been running since it was started',
  { skip: process.platform === 'linux' ? false : '/proc is read' },
  async (t) => {
    const its = process.uptime()
    t.ok(Math.abs(secondsSinceStart(process.pid) - its) < 30, 'and not since the machine was')
  },
)

void t.test(
  'the brk heap is a part of the anonymous memory',
  { skip: process.platform === 'linux' ? false : '/proc is read' },
  async (t) => {
    const heap = brkHeapBytesOf(process.pid) ?? 0
    t.ok(heap > 0)
    t.ok(heap < usageOf(process.pid).anonymousBytes)
  },
)

void t.test('a malformed stat line is refused', async (t) => {
  for (const text of ['', '4242 (node)', 'garbage', '4242 (node) S 1 2 3'])
    t.throws(() => parseStat(text), /not a line/)
})

void t.test('resident, anonymous and peak memory are in bytes', async (t) => {
  const status =
    'Name:\tnode\nVmPeak:\t  900 kB\nVmHWM:\t   2048 kB\nVmRSS:\t   1024 kB\nRssAnon:\t 512 kB\nThreads:\t11\n'
  t.strictSame(parseMemory(status), {
    residentBytes: 1_048_576,
    anonymousBytes: 524_288,
    peakBytes: 2_097_152,
  })
  t.strictSame(parseMemory('Name:\tkthreadd\n'), {
    residentBytes: 0,
    anonymousBytes: 0,
    peakBytes: 0,
  })
})

void t.test('CPU is the sum of threads, unless one ended meanwhile', async (t) => {
  const memory = { residentBytes: 0, anonymousBytes: 0, peakBytes: 0 }
  const at = (cpuSeconds: number, threadSeconds: number) => ({
    cpuSeconds,
    threadSeconds,
    ...memory,
  })
  t.equal(cpuBetween(at(1, 1.004), at(1.01, 1.007)).toFixed(6), '0.003000', 'finer than a tick')
  t.equal(cpuBetween(at(1, 1), at(3, 2)), 2, 'a thread took its second along')
  t.equal(cpuBetween(at(1, 0), at(3, 0)), 2, 'the kernel does not count threads')
})

void t.test(
  'usage of children counts, while they run and afterwards',
  { skip: process.platform === 'linux' ? false : '/proc is read' },
  async (t) => {
    const spin = 'let used; do used = process.cpuUsage(); while (used.user + used.system < 700_000)'
    const parent = spawn(process.execPath, [
      '-e',
      `const { spawnSync, spawn } = require('node:child_process')
       spawnSync(process.execPath, ['-e', ${JSON.stringify(spin)}])
       const child = spawn(process.execPath, ['-e', ${JSON.stringify(`${spin}; console.log('spun'); process.stdin.resume()`)}])
       child.stdout.once('data', () => console.log(child.pid))`,
    ])
    t.teardown(() => parent.kill())
    await once(parent.stdout, 'data')
    const id = parent.pid ?? 0
    const usage = usageOf(id)
    t.ok(usage.cpuSeconds >= 1.3, `${usage.cpuSeconds} s of two that used 0.7 s each`)
    t.ok(usage.residentBytes > 2 * 10_000_000, 'parent and child are resident')
    t.ok(usage.peakBytes >= usage.residentBytes)
  },
)
