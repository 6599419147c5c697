import type { ClientRequest } from 'node:http'
import { afterUnlessClosed } from './clock.ts'

/** A complete answer. */
interface WholeAnswer {
  readonly status: number
  readonly text: string
}

/** More than any answer about a node or a pool. */
const usualMost = 64 * 1024 * 1024

/**
 * The answer to a request on a connection of its own, as text. Rejects, with a message for people,
 * if none comes within `patienceMs` or it is too long.
 */
export function wholeAnswer(
  request: ClientRequest,
  patienceMs: number,
  mostCharacters = usualMost,
): Promise<WholeAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<WholeAnswer>()
  request.on('response', (answer) => {
    let text = ''
    answer.setEncoding('utf8')
    answer.on('data', (chunk: string) => {
      text += chunk
      if (text.length > mostCharacters) request.destroy(new Error('the answer has no end'))
    })
    answer.on('error', reject)
    answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }))
  })
  request.on('error', reject)
  afterUnlessClosed(request, patienceMs, () => request.destroy(new Error('it does not answer')))
  return promise
}
