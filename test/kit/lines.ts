import { once } from 'node:events'
import { type IncomingMessage, get } from 'node:http'
import { createInterface } from 'node:readline'

/**
 * The lines of an answer as they come; ends where it ends or `signal` aborts. Throws where it is no
 * 200 or breaks off.
 */
export async function* followLines(url: string, signal: AbortSignal): AsyncGenerator<string> {
  const request = get(url, { signal, agent: false, headers: { 'user-agent': 'kubelet/v1.36.2' } })
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  if (answer.statusCode !== 200) {
    answer.resume()
    throw new Error(`status ${answer.statusCode}`)
  }
  const lines = createInterface({ input: answer })
  let broken: Error | undefined
  answer.on('error', (error) => {
    broken = error
    lines.close()
  })
  yield* lines
  if (broken && !signal.aborted) throw broken
}
