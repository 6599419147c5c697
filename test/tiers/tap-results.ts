/** What a run of tests comes to, read from the TAP of the whole run. */
export interface Results {
  readonly passed: number
  readonly failed: number
  /** How many tests each reason kept from running. */
  readonly skipped: ReadonlyMap<string, number>
  /** Files and tests that passed without an assertion, each with the file it is of. */
  readonly empty: readonly string[]
  /** How long each file took, the longest first. */
  readonly files: readonly { readonly path: string; readonly ms: number }[]
  /** What each process has taken of the processor, with its first file. */
  readonly processes: readonly { readonly path: string; readonly seconds: number }[]
}

/**
 * A comment with what a process has taken of the processor, for `readResults`. `name`: that of its
 * point, which has its first file.
 */
export const processorComment = (name: string, seconds: number): string =>
  `processor: ${seconds.toFixed(2)} s: ${name}`

const processor = /^# processor: (?<seconds>[\d.]+) s: .*?(?<path>\S+\.test\.ts)/

/** Whether a line is such a comment. */
export const isProcessorComment = (line: string): boolean => processor.test(line)

const point = /^(?<indent> *)(?<not>not )?ok \d+(?: - (?<name>.*))?$/
const directive = / # (?<kind>SKIP|TODO|time=)(?<rest>.*)$/

/** What a file's point is named, wherever it stands: several files may run in one process. */
const testFile = /^test\/\S+\.test\.ts$/

/** What tap says of a file that begins no test, as if that had been meant. */
const foundNothing = 'no tests found'

/**
 * Reads TAP 14 as tap prints it: subtests come indented before the test point that closes them.
 * Only assertions count, not the points that close a subtest. A subtest whose plan is `1..0`
 * asserted nothing; that is meant only where it was skipped for a reason.
 */
export function readResults(lines: Iterable<string>): Results {
  let [passed, failed] = [0, 0]
  const skipped = new Map<string, number>()
  const empty: string[] = []
  const files: { path: string; ms: number }[] = []
  const processes: { path: string; seconds: number }[] = []
  /** Tests of the file being read that asserted nothing: the name of the file comes at its end. */
  let emptyHere: string[] = []
  /** The depth of the plan that came last: the point that follows less deep closes its subtest. */
  let planned: { depth: number; count: number } | undefined
  /** How what belongs to a failed point ends, while it lasts: it may quote anything. */
  let diagnosticsEnd: string | undefined
  for (const line of lines) {
    if (diagnosticsEnd !== undefined) {
      if (line === diagnosticsEnd) diagnosticsEnd = undefined
      continue
    }
    if (/^ +---$/.test(line)) {
      diagnosticsEnd = line.replace('---', '...')
      continue
    }
    const plan = /^( *)1\.\.(\d+)/.exec(line)
    if (plan) {
      planned = { depth: plan[1]?.length ?? 0, count: Number(plan[2]) }
      continue
    }
    const used = processor.exec(line)?.groups
    if (used) processes.push({ path: used['path'] ?? '', seconds: Number(used['seconds']) })
    const found = point.exec(line)?.groups
    if (!found) continue
    const depth = found['indent']?.length ?? 0
    const closes = planned !== undefined && planned.depth > depth
    const asserted = !closes || planned?.count !== 0
    planned = undefined
    const directed = directive.exec(found['name'] ?? '')?.groups
    const name = (found['name'] ?? '').replace(directive, '')
    const isLeftOut = directed !== undefined && directed['kind'] !== 'time='
    const reason = directed?.['rest']?.trim() || 'no reason given'
    if (!asserted && (!isLeftOut || reason === foundNothing)) emptyHere.push(name)
    else if (isLeftOut) {
      skipped.set(reason, (skipped.get(reason) ?? 0) + 1)
    } else if (!closes && found['not'] !== undefined) failed++
    else if (!closes) passed++
    if (depth > 0 && !testFile.test(name)) continue
    empty.push(...emptyHere.map((each) => (each === name ? name : `${name}: ${each}`)))
    emptyHere = []
    const time = /^([\d.]+)ms/.exec(directed?.['rest'] ?? '')?.[1]
    if (time !== undefined && testFile.test(name)) files.push({ path: name, ms: Number(time) })
  }
  const longestFirst = files.toSorted((a, b) => b.ms - a.ms)
  return { passed, failed, skipped, empty, files: longestFirst, processes }
}
