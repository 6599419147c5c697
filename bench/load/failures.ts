/** Counts what went wrong, by what it was. */
export class Failures {
  readonly #counts: Record<string, number> = {}

  add(what: string, count = 1): void {
    if (count > 0) this.#counts[what] = (this.#counts[what] ?? 0) + count
  }

  counts(): Readonly<Record<string, number>> {
    return { ...this.#counts }
  }
}

/** Tells how much of one core this process takes from now on, 0 to 1. */
export function startShare(): () => number {
  const cpu = process.cpuUsage()
  const at = performance.now()
  return () => {
    const { user, system } = process.cpuUsage(cpu)
    return (user + system) / 1000 / (performance.now() - at)
  }
}
