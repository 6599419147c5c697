/** An act that is given an input, and takes time for it. */
export type Act<Input> = (input: Input) => unknown

/** Less than this is too little to be told from what the process does besides. */
const leastMicroseconds = 10_000

/** What shows in this much shows. */
const mostMicroseconds = 2_000_000

/**
 * Four times the work for four times the input, and sixteen where it takes the square: the middle
 * of both.
 */
const mostGrowth = 8

/**
 * Whether `act` takes much more than four times the work for an input that is four times as long:
 * `large` beside `small`. It is the CPU time of this thread, the least of several turns, so that
 * neither a busy machine nor a collection of garbage makes it more.
 */
export async function isSuperLinear<Input>(
  act: Act<Input>,
  small: Input,
  large: Input,
): Promise<boolean> {
  let [little, much] = [Infinity, Infinity]
  // An act that passes does so at the first turn; one that does not is given the chance to have
  // been unlucky.
  for (let turn = 0; turn < 5; turn++) {
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
