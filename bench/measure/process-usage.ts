import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { uptime } from 'node:os'

/** What a process and those it started have used so far, and hold. */
export interface Usage {
  /** User and system time, of children that have ended too, in ticks of 10 ms. */
  readonly cpuSeconds: number
  /** Of the threads that run now, in nanoseconds; nothing where the kernel does not count it. */
  readonly threadSeconds: number
  /** The same of the main threads alone. */
  readonly mainSeconds: number
  readonly residentBytes: number
  /** Resident and of no file: what the process alone holds. */
  readonly anonymousBytes: number
  /** The most that was resident at a time, since the start or since `forgetPeak`. */
  readonly peakBytes: number
}

/** One line of `/proc/PID/stat`, as far as it is looked at. Times in clock ticks. */
export interface ProcessStat {
  readonly id: number
  readonly parent: number
  readonly ticks: number
  /** Of children that have ended and were waited for. */
  readonly childTicks: number
  /** When it was started, since the start of the machine. */
  readonly startTicks: number
}

/**
 * USER_HZ: what the kernel shows to programs, whatever it counts in itself (`man 5 proc`, `man 7
 * time`).
 */
const ticksPerSecond = 100

/**
 * Reads the words of `/proc/PID/stat` (`man 5 proc_pid_stat`); the name in brackets may hold blanks
 * and brackets itself.
 */
function parseStat(text: string): ProcessStat {
  const end = text.lastIndexOf(')')
  const after = text.slice(end + 2).split(' ')
  const field = (number: number): number => Number(after[number - 3])
  const stat = {
    id: Number.parseInt(text, 10),
    parent: field(4),
    ticks: field(14) + field(15),
    childTicks: field(16) + field(17),
    startTicks: field(22),
  }
  if (end < 0 || Object.values(stat).some(Number.isNaN))
    throw new Error(`not a line of /proc/PID/stat: ${text.slice(0, 80)}`)
  return stat
}

/**
 * Reads VmRSS, RssAnon and VmHWM of `/proc/PID/status`, given in kB. What has no memory (it is
 * ending) holds nothing.
 */
function parseMemory(text: string): Pick<Usage, 'residentBytes' | 'anonymousBytes' | 'peakBytes'> {
  const kilobytes = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1] ?? 0)
  return {
    residentBytes: kilobytes('VmRSS') * 1024,
    anonymousBytes: kilobytes('RssAnon') * 1024,
    peakBytes: kilobytes('VmHWM') * 1024,
  }
}

/** What `root` and all that descends from it use. Throws if there is no such process. */
export function usageOf(root: number): Usage {
  const below = descendantsOf(root).flatMap((id) => {
    try {
      return [usageOfOne(id)]
    } catch {
      return [] // It ended meanwhile, and counts as its parent's child.
    }
  })
  const usages = [usageOfOne(root), ...below]
  const sum = (key: keyof Usage): number => usages.reduce((total, each) => total + each[key], 0)
  return {
    cpuSeconds: sum('cpuSeconds'),
    threadSeconds: sum('threadSeconds'),
    mainSeconds: sum('mainSeconds'),
    residentBytes: sum('residentBytes'),
    anonymousBytes: sum('anonymousBytes'),
    peakBytes: sum('peakBytes'),
  }
}

/**
 * What a process, without its children, has resident of the heap that grows by brk(2), where malloc
 * keeps what is small; `undefined` where it has none, as a program in Go.
 */
export function brkHeapBytesOf(id: number): number | undefined {
  const maps = readFileSync(`/proc/${id}/smaps`, 'utf8')
  const [, heap] = /\[heap\]\n([^]*?VmFlags)/.exec(maps) ?? []
  return heap === undefined ? undefined : Number(/^Rss:\s+(\d+) kB$/m.exec(heap)?.[1]) * 1024
}

/** How long a process has been running. Throws if there is none. */
export function secondsSinceStart(id: number): number {
  const { startTicks } = parseStat(readFileSync(`/proc/${id}/stat`, 'utf8'))
  return uptime() - startTicks / ticksPerSecond
}

function usageOfOne(id: number): Usage {
  const { ticks, childTicks } = parseStat(readFileSync(`/proc/${id}/stat`, 'utf8'))
  const memory = parseMemory(readFileSync(`/proc/${id}/status`, 'utf8'))
  const cpuSeconds = (ticks + childTicks) / ticksPerSecond
  const threads = secondsOfThreads(id)
  const threadSeconds = [...threads.values()].reduce((total, each) => total + each, 0)
  return { cpuSeconds, threadSeconds, mainSeconds: threads.get(`${id}`) ?? 0, ...memory }
}

/**
 * User and system time of the children of this process that have ended and were waited for, with
 * those that they had waited for; 0 where there is no `/proc`.
 */
export function waitedForSeconds(): number {
  const path = '/proc/self/stat'
  if (!existsSync(path)) return 0
  return parseStat(readFileSync(path, 'utf8')).childTicks / ticksPerSecond
}

/** The first word of each thread's `schedstat` (Documentation/scheduler/sched-stats.rst). */
function secondsOfThreads(id: number): ReadonlyMap<string, number> {
  const folder = `/proc/${id}/task`
  const seconds = new Map<string, number>()
  for (const thread of readdirSync(folder)) {
    try {
      const words = readFileSync(`${folder}/${thread}/schedstat`, 'utf8')
      seconds.set(thread, Number.parseInt(words, 10) / 1e9)
    } catch {
      // It ended meanwhile, or the kernel does not count.
    }
  }
  return seconds
}

/** So many more ticks than threads ran: one of them, or a child, ended in between. */
const endedSeconds = 0.05

/** The CPU between two readings of one process: to the nanosecond, unless threads ended. */
export function cpuBetween(before: Usage, after: Usage): number {
  const ticks = after.cpuSeconds - before.cpuSeconds
  const exact = after.threadSeconds - before.threadSeconds
  return after.threadSeconds === 0 || ticks - exact > endedSeconds ? ticks : exact
}

/**
 * Makes `peakBytes` of a process count from now on, where the kernel lets us (`man 5
 * proc_pid_clear_refs`).
 */
export function forgetPeak(id: number): void {
  try {
    writeFileSync(`/proc/${id}/clear_refs`, '5')
  } catch {
    // The peak since the start is what is reported then.
  }
}

function descendantsOf(root: number): number[] {
  const children = Map.groupBy(everyStat(), ({ parent }) => parent)
  const below = (id: number): number[] =>
    (children.get(id) ?? []).flatMap((child) => [child.id, ...below(child.id)])
  return below(root)
}

function everyStat(): ProcessStat[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      return [parseStat(readFileSync(`/proc/${name}/stat`, 'utf8'))]
    } catch {
      return [] // It ended meanwhile.
    }
  })
}
