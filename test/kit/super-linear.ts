/** An action whose time depends on its input. */
export type Act<Input> = (input: Input) => unknown

/** Below this the measurement is noise. */
const leastMicroseconds = 10_000

/** Enough for a result. */
const mostMicroseconds = 2_000_000

/** Linear work grows by 4, quadratic by 16: the limit is between. */
const mostGrowth = 8

/**
 * Whether `act` takes much more than four times the work for `large`, an input four times as long
 * as `small`. Measures the least CPU time of this thread in several rounds, so that neither a busy
 * machine nor a garbage collection adds to it.
 */
export async function isSuperLinear<Input>(
  act: Act<Input>,
  small: Input,
  large: Input,
): Promise<boolean> {
  let [little, much] = [Infinity, Infinity]
  // A fast action returns in the first round; a slow one may have been unlucky, on a machine whose
  // cores are shared several times in a row.
  for (let turn = 0; turn < 15; turn++) {
    little = Math.min(little, await work(act, small))
    much = Math.min(much, await work(act, large))
    if (much < leastMicroseconds || much < mostGrowth * little) return false
    if (much > mostMicroseconds) break
  }
  return true
}

async function work<Input>(act: Act<Input>, input: Input): Promise<number> {
  const before = process.threadCpuUsage()
  await act(input)
  const { user, system } = process.threadCpuUsage(before)
  return user + system
}
