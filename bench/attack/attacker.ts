// A process of an unprivileged user that uses every tactic at once: it reads a Victim from standard
// input, attacks until that closes, and writes what came of it to standard output as JSON.
import { createInterface } from 'node:readline'
import { tactics, type Victim } from './tactics.ts'

/** By tactic, how often each outcome was seen. */
export type Outcomes = Readonly<Record<string, Readonly<Record<string, number>>>>

async function attack(): Promise<Outcomes> {
  const over = new AbortController()
  const lines = createInterface({ input: process.stdin })
  const victim = await new Promise<Victim>((resolve) =>
    lines.once('line', (line) => resolve(JSON.parse(line) as Victim)),
  )
  lines.once('close', () => over.abort())
  const outcomes: Record<string, Record<string, number>> = {}
  await Promise.all(
    tactics.map((tactic) => {
      const counts: Record<string, number> = (outcomes[tactic.name] = {})
      return tactic.attack(victim, (what) => (counts[what] = (counts[what] ?? 0) + 1), over.signal)
    }),
  )
  return outcomes
}

if (import.meta.main) {
  const outcomes = await attack()
  process.stdout.write(JSON.stringify(outcomes), () => process.exit(0))
}
