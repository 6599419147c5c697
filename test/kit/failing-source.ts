import type { ByteSource } from '../../src/http/exchange/exchange.ts'

/** A body that says `text` and then fails with `cause`. */
export const failingSource =
  (text: string, cause: Error): ByteSource =>
  (sink) => {
    queueMicrotask(() => {
      sink.write(Buffer.from(text))
      sink.fail(cause)
    })
    return () => undefined
  }
