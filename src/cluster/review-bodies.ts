import { LightAbort, onAbort } from '../base/abort.ts'
import { after } from '../base/clock.ts'
import type { Incoming } from '../http/exchange/exchange.ts'
import { wholeRequestBody } from '../http/exchange/request-body.ts'
import { requestEntityTooLarge, StatusError, timeout, tooManyRequests } from '../api/kube/status.ts'

/**
 * An object is 1.5 MB at most in etcd, and an update is sent with the object before it; the API
 * server cuts no list to be converted.
 */
export const largestBody = 8 * 1024 * 1024

/** How long a body may arrive: API servers wait 5 s for admission. */
export const arrivalMs = 5_000

/** Why a body was not read to its end. */
export type ShedReason = 'full' | 'slow-body'

/** A whole body. Its bytes count until it is disposed of. */
interface ReviewBody extends Disposable {
  readonly content: Buffer
}

interface ArrivingBody {
  bytes: number
  readonly end: LightAbort
}

/**
 * Reads the bodies of reviews within one budget of bytes, which count as they arrive. Where it is
 * used up, the body that has been arriving for longest is ended: those of API servers arrive at
 * once.
 */
export class ReviewBodies {
  readonly #most: number
  readonly #onShed: (why: ShedReason) => void
  /** The oldest first. */
  readonly #arriving = new Set<ArrivingBody>()
  #bytes = 0

  /** All bodies that are read or reviewed may have `most` bytes together. */
  constructor(most: number, onShed: (why: ShedReason) => void) {
    this.#most = most
    this.#onShed = onShed
  }

  /** Throws 413, 429 or 504, or fails with the request where its client has gone. */
  async read({ body, headers, signal }: Incoming): Promise<ReviewBody> {
    if (!body) return { content: Buffer.alloc(0), [Symbol.dispose]: () => undefined }
    if (Number(headers.get('content-length')) > largestBody)
      throw new StatusError(requestEntityTooLarge(`limit is ${largestBody}`))
    const arriving: ArrivingBody = { bytes: 0, end: new LightAbort() }
    this.#arriving.add(arriving)
    using _gone = onAbort(signal, () => arriving.end.abort(signal.reason))
    using _late = after(arrivalMs, () =>
      this.#end(arriving, 'slow-body', timeout('the body of the review did not arrive in time')),
    )
    try {
      const content = await wholeRequestBody(body, largestBody, {
        signal: arriving.end,
        onPart: (bytes) => this.#count(arriving, bytes),
      })
      return { content, [Symbol.dispose]: () => this.#release(arriving) }
    } catch (cause) {
      this.#release(arriving)
      throw cause
    } finally {
      this.#arriving.delete(arriving)
    }
  }

  #count(arriving: ArrivingBody, bytes: number): void {
    arriving.bytes += bytes
    this.#bytes += bytes
    for (const oldest of this.#arriving) {
      if (this.#bytes <= this.#most) return
      this.#end(oldest, 'full', tooManyRequests('too many reviews at once', 1))
    }
  }

  #end(arriving: ArrivingBody, why: ShedReason, status: StatusError['status']): void {
    this.#onShed(why)
    this.#arriving.delete(arriving)
    this.#release(arriving)
    arriving.end.abort(new StatusError(status))
  }

  #release(arriving: ArrivingBody): void {
    this.#bytes -= arriving.bytes
    arriving.bytes = 0
  }
}
