import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * So many files at most share a process: one that ends it takes the others with it. Those of whole
 * hubs take seconds each, and what is long must not begin last.
 */
const mostOf = (folder: string): number => (folder === 'test/scenarios' ? 4 : 10)

/**
 * Where a test replaces, breaks or measures what the whole process shares: clocks, signals and
 * warnings, methods of every instance, the environment, the heap, processor time.
 */
const ofItsProcess =
  /\bprocess\.(?:on|once|off|env|chdir|argv|exit|memoryUsage|\w*[cC]puUsage)\b|set-clock|\bmock\b|held-bytes|heap-snapshot|kit\/work|warnings?\(|syncBuiltinESMExports|broken\(|setFlags|globalThis|prototype/

/** Files that are long, or about what a process takes or how it ends. */
const longOrOfProcesses =
  /^test\/(?:attacks|bench\/(?:open-connections|process-usage|rows)|control-plane|crash|differential|fuzz|model|mutants)\b/

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
    if (
      alone.includes(file) ||
      longOrOfProcesses.test(file) ||
      ofItsProcess.test(readFileSync(file, 'utf8'))
    ) {
      groups.push([file])
      continue
    }
    const folder = folderOf(file)
    const group = open.get(folder)
    if (group && group.length < mostOf(folder)) group.push(file)
    else {
      const begun = [file]
      groups.push(begun)
      open.set(folder, begun)
    }
  }
  return groups
}
