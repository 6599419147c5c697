import type { ServerResponse } from 'node:http'
import type { Sink } from '../exchange/exchange.ts'
import { drainedOf } from './drained.ts'

/** A Sink over a response whose head has been set, which goes out with the first bytes. `onBroken` is told why it failed. */
export function responseSink(
  response: ServerResponse,
  onBroken: (cause: unknown) => void,
): Sink & { started(): boolean } {
  let started = false
  return {
    started: () => started,
    write: (chunk) => {
      started = true
      return response.write(chunk)
    },
    drained: drainedOf(response),
    end: (trailers) => {
      started = true
      if (trailers && trailers.length > 0) response.addTrailers(pairs(trailers))
      response.end()
    },
    fail: (cause) => {
      started = true
      // A response that is gone already went with its client, who is no failure.
      if (!response.destroyed) onBroken(cause)
      response.destroy(cause)
    },
  }
}

function pairs(raw: readonly string[]): [string, string][] {
  const result: [string, string][] = []
  for (let i = 0; i < raw.length; i += 2) result.push([raw[i] ?? '', raw[i + 1] ?? ''])
  return result
}
