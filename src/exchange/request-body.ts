import { asBuffer, joined } from '../base/bytes.ts'
import { requestEntityTooLarge, StatusError } from '../kube/status.ts'

/** All of a request's body. Throws 413 where it is longer than `most` bytes, whatever length was announced: in HTTP/2 it may be another. */
export async function wholeRequestBody(
  body: AsyncIterable<unknown>,
  most: number,
): Promise<Buffer> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of body) {
    const chunk = asBuffer(part as Uint8Array)
    bytes += chunk.byteLength
    if (bytes > most) throw new StatusError(requestEntityTooLarge(`limit is ${most}`))
    parts.push(chunk)
  }
  return joined(parts)
}
