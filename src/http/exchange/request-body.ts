import type { Readable } from 'node:stream'
import { onAbort, type AbortSignalLike } from '../../base/abort.ts'
import { requestEntityTooLarge, StatusError } from '../../api/kube/status.ts'
import { BrokenStream } from './chunks.ts'

interface Reading {
  /** Reading fails with its reason; what has arrived is released. */
  readonly signal?: AbortSignalLike
  /** Called with the bytes of each part as it arrives. */
  readonly onPart?: (bytes: number) => void
}

/**
 * Reads the whole body of a request. Throws 413 where it is longer than `most` bytes, whatever its
 * Content-Length: in HTTP/2 they may differ. Where this throws, the listener keeps the stream: it
 * discards the rest, and can still send an answer.
 */
export async function wholeRequestBody(
  body: Readable,
  most: number,
  { signal, onPart = () => undefined }: Reading = {},
): Promise<Buffer> {
  // Grows by doubling: small chunks kept as separate buffers would take hundreds of times their
  // size.
  let held = Buffer.alloc(0)
  let bytes = 0
  const whole = Promise.withResolvers<void>()
  const take = (part: Uint8Array): void => {
    const end = bytes + part.byteLength
    if (end > most) return whole.reject(new StatusError(requestEntityTooLarge(`limit is ${most}`)))
    if (end > held.byteLength) {
      const larger = Buffer.allocUnsafeSlow(Math.min(most, Math.max(end, 2 * held.byteLength)))
      held.copy(larger, 0, 0, bytes)
      held = larger
    }
    held.set(part, bytes)
    bytes = end
    onPart(part.byteLength)
  }
  const cut = (): void =>
    whole.reject(new BrokenStream(undefined, 'the request ended before its body'))
  using _aborted = signal && onAbort(signal, () => whole.reject(signal.reason as Error))
  body.on('data', take).once('end', whole.resolve).once('error', whole.reject).once('close', cut)
  try {
    await whole.promise
    return held.subarray(0, bytes)
  } finally {
    body.off('data', take).off('end', whole.resolve).off('close', cut)
    body.off('error', whole.reject)
    body.pause()
  }
}
