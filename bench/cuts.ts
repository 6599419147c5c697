// npm run cuts -- ROUNDS: client-go's own reflectors behind a hub that is cut off over and over.
// README.md says more.
import { sufferCuts } from '../test/control-plane/cuts.ts'
import { noControlPlane } from '../test/kit/control-plane.ts'
import { Lifetime } from './lifetime.ts'

const say = (line: string): void => console.log(line)

async function main(): Promise<number> {
  const rounds = Number(process.argv[2] ?? 100)
  const reason = noControlPlane()
  if (!Number.isSafeInteger(rounds) || rounds < 1 || reason !== undefined) {
    console.error(`cuts: ${reason ?? 'say how many rounds'}`)
    return 2
  }
  await using lifetime = new Lifetime(say)
  const converged = await sufferCuts(lifetime, rounds)
  if ('missing' in converged) {
    console.error(`cuts: ${converged.missing}`)
    return 2
  }
  for (const line of converged.differences) say(`! ${line}`)
  say(
    `${rounds} cuts, ${converged.reflectors} reflectors; differences: ${converged.differences.length}`,
  )
  for (const [cut, count] of Object.entries(converged.relists))
    say(`relists after ${cut}: ${count}`)
  lifetime.failed = converged.differences.length > 0 || converged.needless > 0
  return lifetime.failed ? 1 : 0
}

process.exitCode = await main()
