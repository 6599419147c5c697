import { joined, lengthOf } from '../../base/bytes.ts'
import { isProgrammingError } from '../../base/expected-fault.ts'
import type { ByteSource } from './exchange.ts'

/**
 * A body ended before it was whole: its sender, the link, or the request's own end broke it off.
 */
export class BrokenStream extends Error {
  readonly code: string = 'BROKEN_STREAM'
  constructor(cause: unknown, message = 'an answer broke off') {
    super(message, { cause })
  }
}

/**
 * What a body failed with, as those see it who read it: a mistake in a program stays what it is.
 */
export const asBrokenStream = (cause: unknown): unknown =>
  isProgrammingError(cause) || cause instanceof BrokenStream ? cause : new BrokenStream(cause)

/** How much may wait to be read before the source is told to stop. */
export const bufferedBytes = 1024 * 1024

/**
 * A pushed source made into one to be pulled: each step yields all that has arrived since the last.
 * Throws the cause where the source failed; leaving the loop early gives up the rest. `trailers`
 * are those of the source, once the iteration is over.
 */
export class Chunks implements AsyncIterable<readonly Uint8Array[]> {
  trailers: readonly string[] | undefined
  readonly #giveUp: () => void
  #waiting: Uint8Array[] = []
  #waitingBytes = 0
  #over = false
  #cause: Error | undefined
  #wake: (() => void) | undefined
  #drained: (() => void) | undefined

  constructor(source: ByteSource) {
    this.#giveUp = source({
      write: (chunk) => {
        this.#waiting.push(chunk)
        this.#waitingBytes += chunk.byteLength
        this.#wake?.()
        return this.#waitingBytes < bufferedBytes
      },
      drained: () =>
        this.#waitingBytes < bufferedBytes
          ? Promise.resolve()
          : new Promise((resolve) => {
              this.#drained = resolve
            }),
      end: (trailers) => {
        this.trailers = trailers
        this.#finish()
      },
      fail: (cause) => {
        this.#cause = cause
        this.#finish()
      },
    })
  }

  /**
   * All that has arrived, where that is all there is: it need not be waited for, and is not yielded
   * any more.
   */
  takeWhole(): readonly Uint8Array[] | undefined {
    return this.#over && this.#cause === undefined ? this.#take() : undefined
  }

  #finish(): void {
    this.#over = true
    this.#wake?.()
  }

  #take(): Uint8Array[] {
    const taken = this.#waiting
    this.#waiting = []
    this.#waitingBytes = 0
    this.#drained?.()
    this.#drained = undefined
    return taken
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<readonly Uint8Array[]> {
    try {
      for (;;) {
        if (this.#waiting.length > 0) yield this.#take()
        else if (this.#cause) throw this.#cause
        else if (this.#over) return
        else {
          await new Promise<void>((resolve) => {
            this.#wake = resolve
          })
          this.#wake = undefined
        }
      }
    } finally {
      if (!this.#over) this.#giveUp()
      this.#take()
    }
  }
}

/**
 * All of a body, as text. Throws where it is longer than `mostBytes`, and the cause where the
 * source failed.
 */
export async function wholeText(source: ByteSource, mostBytes: number): Promise<string> {
  const received: Uint8Array[] = []
  for await (const group of new Chunks(source)) {
    received.push(...group)
    if (lengthOf(received) > mostBytes)
      throw new Error(`the answer is longer than ${mostBytes} bytes`)
  }
  return joined(received).toString()
}

/**
 * The reverse: a source that pulls what it writes, no faster than its sink takes it. Given up, it
 * takes no more and lets go of `chunks`; failed by them, it fails its sink.
 */
export function sourceOf(chunks: AsyncGenerator<readonly Uint8Array[]>): ByteSource {
  return (sink) => {
    let wanted = true
    const run = async (): Promise<void> => {
      for await (const group of chunks) {
        for (const chunk of group) {
          if (!wanted) return
          if (!sink.write(chunk)) await sink.drained()
        }
      }
      if (wanted) sink.end()
    }
    run().catch((cause: unknown) => {
      if (wanted) sink.fail(cause instanceof Error ? cause : new Error('failed', { cause }))
    })
    return () => {
      wanted = false
      void chunks.return(undefined)
    }
  }
}
