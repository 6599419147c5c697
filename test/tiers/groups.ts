import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * So many files at most share a process: one that ends it takes the others with it. Those of whole
 * hubs take seconds each, and what is long must not begin last.
 */
const mostOf = (folder: string): number => most[folder] ?? 24

const most: Readonly<Record<string, number>> = {
  'test/scenarios': 8,
  'test/attacks': 10,
  'test/cli': 10,
}

/**
 * Where a test replaces, breaks or measures what the whole process shares: signals and warnings,
 * methods of every instance, the environment, the heap, processor time.
 */
const ofItsProcess =
  /\bprocess\.(?:on|once|off|chdir|argv|exit|memoryUsage|\w*[cC]puUsage)\b|\bprocess\.env\S* = |held-bytes|heap-snapshot|super-linear|kit\/work|warnings?\(|syncBuiltinESMExports|broken\(|setFlags|globalThis|prototype/

/**
 * Where a test has a clock of its own, which it takes away at its end: such files share processes,
 * in which no others have left anything that waits for a time.
 */
const ofClocks = /set-clock|\bmock\b/

/** Files that are long, or about what a process takes or how it ends. */
const longOrOfProcesses =
  /^test\/(?:attacks\/(?:bogus-tokens|debugger-signal)|bench\/(?:open-connections|process-usage|rows)|control-plane|crash|model)\b/

/** The folder below `test/`: `test/hub` of `test/hub/store/sqlite/open.test.ts`. */
const folderOf = (file: string): string => /^test\/[^/]+(?=\/)/.exec(file)?.[0] ?? dirname(file)

/**
 * The files that a process runs, one after the other: of a folder those together that are short and
 * do nothing to the process they are in. What is in `alone` is.
 */
export function groupsOf(files: readonly string[], alone: readonly string[]): string[][] {
  const groups: string[][] = []
  const open = new Map<string, string[]>()
  for (const file of files) {
    const text = readFileSync(file, 'utf8')
    if (alone.includes(file) || longOrOfProcesses.test(file) || ofItsProcess.test(text)) {
      groups.push([file])
      continue
    }
    const together = ofClocks.test(text) ? 'clocks' : folderOf(file)
    const group = open.get(together)
    if (group && group.length < mostOf(together)) group.push(file)
    else {
      const begun = [file]
      groups.push(begun)
      open.set(together, begun)
    }
  }
  return groups
}
