import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * So many files at most share a process: one that ends it takes the others with it. Those of whole
 * hubs take seconds each, and what is long must not begin last.
 */
const mostOf = (folder: string): number => most[folder] ?? 32

const most: Readonly<Record<string, number>> = {
  'test/scenarios': 10,
  'test/attacks': 12,
  'test/cli': 10,
}

/**
 * Where a test measures what the whole process has, or cannot put back what it changes there: the
 * heap, processor time, V8's flags.
 */
const ofItsProcess =
  /\bprocess\.(?:chdir|argv|exit|memoryUsage|\w*[cC]puUsage)\b|held-bytes|heap-snapshot|super-linear|kit\/work|syncBuiltinESMExports|broken\(\w+\.prototype|setFlags/

/** Where a test listens to its process, or changes the environment, until it ends. */
const listens = /\bprocess\.(?:on|once|off)\b|\bprocess\.env\S* = /

/** Where a test has a clock of its own until it ends. */
const ofClocks = /set-clock|\bmock\b/

/**
 * The files that such a one may share a process with: its like, where no others have left anything
 * that waits for a time, warns or fails late; else those of its folder.
 */
const companyOf = (file: string, text: string): string => {
  if (ofClocks.test(text)) return 'clocks'
  return listens.test(text) ? 'listeners' : folderOf(file)
}

/** Files that are long, or about what a process takes or how it ends. */
const longOrOfProcesses =
  /^test\/(?:attacks\/(?:bogus-tokens|debugger-signal)|bench\/(?:open-connections|process-usage|rows)|control-plane|crash|model)\b/

/** The folder below `test/`: `test/hub` of `test/hub/store/log/lock.test.ts`. */
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
    const together = companyOf(file, text)
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
