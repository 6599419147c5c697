/** Which parts of a text ran, as V8 counts them. */

/** Offsets: the first of a part that ran, then the first after it, and so on, ascending. */
export type Executed = readonly number[]

export interface FunctionCoverage {
  readonly ranges: readonly {
    readonly startOffset: number
    readonly endOffset: number
    readonly count: number
  }[]
}

/** What ran of a script: of all ranges around a place the innermost has its count. */
export function executedOf(functions: readonly FunctionCoverage[]): Executed {
  const ranges = functions
    .flatMap((each) => each.ranges)
    .toSorted((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset)
  const executed: number[] = []
  const around: (typeof ranges)[number][] = []
  let at = 0
  const until = (offset: number): void => {
    const count = around.at(-1)?.count ?? 0
    if (offset > at && count > 0) {
      if (executed.at(-1) === at) executed.pop()
      else executed.push(at)
      executed.push(offset)
    }
    at = Math.max(at, offset)
  }
  const close = (offset: number): void => {
    for (let last = around.at(-1); last && last.endOffset <= offset; last = around.at(-1)) {
      until(last.endOffset)
      around.pop()
    }
  }
  for (const range of ranges) {
    close(range.startOffset)
    until(range.startOffset)
    around.push(range)
  }
  close(Infinity)
  return executed
}

/** What ran in one of both runs. */
export function either(a: Executed, b: Executed): Executed {
  if (a.length === 0) return b
  const parts: [number, number][] = []
  for (const each of [a, b])
    for (let i = 0; i < each.length; i += 2) parts.push([each[i] ?? 0, each[i + 1] ?? 0])
  const merged: number[] = []
  for (const [start, end] of parts.toSorted((x, y) => x[0] - y[0])) {
    const last = merged.at(-1)
    if (last !== undefined && start <= last) merged[merged.length - 1] = Math.max(last, end)
    else merged.push(start, end)
  }
  return merged
}

/** Whether the character at `offset` ran. */
export function ran(executed: Executed, offset: number): boolean {
  const index = executed.findLastIndex((bound) => bound <= offset)
  return index !== -1 && index % 2 === 0
}
