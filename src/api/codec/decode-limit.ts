/** A value that is asked for as a whole and is larger than anybody should decode at one go. */
export class ValueTooLarge extends Error {
  readonly code = 'LARGE_VALUE'

  constructor() {
    super(`a value of more than ${maxDecodedBytes} bytes is not decoded as a whole`)
  }
}

/** What an API server lets a list grow to takes less: a thousand endpoints are half of it. */
export const maxDecodedBytes = 1024 * 1024

/** Throws a `LargeValue` for more bytes than are decoded at one go. */
export function checkDecodable(bytes: number): void {
  if (bytes > maxDecodedBytes) throw new ValueTooLarge()
}
