import { joined, lengthOf } from '../../base/bytes.ts'
import { turn } from '../../base/clock.ts'
import { isProgrammingError } from '../../base/expected-fault.ts'
import { UnusableAnswer, type ByteSource, type UpstreamReply } from './exchange.ts'

/** A body ended early: its sender, the connection, or the end of the request broke it off. */
export class BrokenStream extends Error {
  readonly code: string = 'BROKEN_STREAM'
  constructor(cause: unknown, message = 'an answer broke off') {
    super(message, { cause })
  }
}

/**
 * The error that readers of a body get: programming errors pass unchanged, other causes become a
 * `BrokenStream`.
 */
const asBrokenStream = (cause: unknown): unknown =>
  isProgrammingError(cause) || cause instanceof BrokenStream ? cause : new BrokenStream(cause)

/** Reads one body, from chunks split anywhere. */
interface Decoder<T> {
  push(chunk: Uint8Array): T[]
}

/** How many bytes may wait for the reader before the source has to stop. */
export const bufferedBytes = 1024 * 1024

/**
 * Turns a pushed source into an iterable: each step yields all that has arrived since the last.
 * Throws a `BrokenStream` where the source fails; leaving the loop early stops the source.
 * `trailers` are set when the iteration is over.
 */
export class Chunks implements AsyncIterable<readonly Uint8Array[]> {
  trailers: readonly string[] | undefined
  /**
   * How many bytes a step waits for, until the event loop turns: TLS hands over each record of 16
   * KB by itself, also where several have arrived.
   */
  gatheredBytes = 0
  readonly #giveUp: () => void
  #waiting: Uint8Array[] = []
  #waitingBytes = 0
  #over = false
  #cause: Error | undefined
  #wake: (() => void) | undefined
  #isTurning = false
  #drained: (() => void) | undefined

  constructor(source: ByteSource) {
    this.#giveUp = source({
      write: (chunk) => {
        this.#waiting.push(chunk)
        this.#waitingBytes += chunk.byteLength
        if (this.#waitingBytes >= this.gatheredBytes) this.#wake?.()
        else this.#wakeNextTurn()
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

  /** The whole body, where all of it has arrived: it is then not yielded again. */
  takeWhole(): readonly Uint8Array[] | undefined {
    return this.#over && this.#cause === undefined ? this.#take() : undefined
  }

  #wakeNextTurn(): void {
    if (this.#isTurning) return
    this.#isTurning = true
    void turn().then(() => {
      this.#isTurning = false
      this.#wake?.()
    })
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

  [Symbol.asyncIterator](): AsyncGenerator<readonly Uint8Array[]> {
    return this.#steps()
  }

  /** What the chunks have completed. Ends cleanly where the source breaks off: all is yielded. */
  decoded<T>(decoder: Decoder<T>): AsyncGenerator<readonly T[]> {
    return this.#steps(decoder)
  }

  #steps(): AsyncGenerator<readonly Uint8Array[]>
  #steps<T>(decoder: Decoder<T>): AsyncGenerator<readonly T[]>
  async *#steps<T>(decoder?: Decoder<T>): AsyncGenerator<readonly (T | Uint8Array)[]> {
    try {
      for (;;) {
        if (this.#waiting.length > 0) {
          const chunks = this.#take()
          const step = decoder ? chunks.flatMap((chunk) => decoder.push(chunk)) : chunks
          if (step.length > 0) yield step
        } else if (this.#cause) {
          const cause = asBrokenStream(this.#cause)
          if (decoder && cause instanceof BrokenStream) return
          throw cause
        } else if (this.#over) return
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
 * Reads a whole body as text. Throws where it is longer than `mostBytes`, and a `BrokenStream`
 * where the source fails.
 */
export async function wholeText(source: ByteSource, mostBytes: number): Promise<string> {
  const received: Uint8Array[] = []
  for await (const group of new Chunks(source)) {
    received.push(...group)
    if (lengthOf(received) > mostBytes)
      throw new UnusableAnswer(`the answer is longer than ${mostBytes} bytes`)
  }
  return joined(received).toString()
}

/** The body of an upstream's answer, whether it has arrived or not. */
export const bodyOf = (reply: UpstreamReply): ByteSource =>
  reply.kind === 'bytes'
    ? reply.source
    : (sink) => {
        sink.write(reply.body)
        sink.end()
        return () => undefined
      }

/**
 * The reverse of `Chunks`: a source that pulls from `chunks`, no faster than its sink accepts.
 * Stopping it returns from `chunks`; an error in them fails the sink. `releaseOf` gives what
 * is to be called once nothing reads a chunk any longer.
 */
export function sourceOf(
  chunks: AsyncGenerator<readonly Uint8Array[]>,
  releaseOf?: (chunk: Uint8Array) => (() => void) | undefined,
): ByteSource {
  return (sink) => {
    let stopped = false
    const run = async (): Promise<void> => {
      for await (const group of chunks) {
        for (const chunk of group) {
          if (stopped) return
          const hasRoom = sink.write(chunk, releaseOf?.(chunk))
          if (!hasRoom) await sink.drained()
        }
      }
      if (!stopped) sink.end()
    }
    run().catch((cause: unknown) => {
      if (!stopped) sink.fail(cause instanceof Error ? cause : new Error('failed', { cause }))
    })
    return () => {
      stopped = true
      void chunks.return(undefined)
    }
  }
}
