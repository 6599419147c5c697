/** The value at a path is larger than the codec decodes at once. */
export class ValueTooLarge extends Error {
  readonly code = 'LARGE_VALUE'

  constructor() {
    super(`a value of more than ${maxDecodedBytes} bytes is not decoded as a whole`)
  }
}

/** EndpointSlices have at most 1,000 endpoints, which is half of this. */
export const maxDecodedBytes = 1024 * 1024

/** Throws a `ValueTooLarge` for more bytes than the codec decodes at once. */
export function checkDecodable(bytes: number): void {
  if (bytes > maxDecodedBytes) throw new ValueTooLarge()
}
