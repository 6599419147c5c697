import { Readable } from 'node:stream'

/**
 * A separate stream with the bytes of `body`, for one attempt. undici destroys a request's body
 * when the request ends; with the client's own stream it would destroy the client's connection,
 * and the next attempt would have no body.
 */
export function bodyCopy(body: Readable): Readable {
  let begun = false
  const copy = new Readable({
    read: () => {
      // An empty body may end before the first read.
      if (body.readableEnded) {
        if (body.readableDidRead) copy.destroy(new Error('an earlier attempt has read the body'))
        else copy.push(null)
        return
      }
      if (!begun) body.on('data', onData).on('end', onEnd).on('close', onClose)
      begun = true
      body.resume()
    },
    destroy: (cause, done) => {
      body.off('data', onData).off('end', onEnd).off('close', onClose)
      done(cause)
    },
  })
  // undici reads the length of the body of a request that was cancelled in its queue, and listens
  // to no error of it.
  copy.on('error', () => undefined)
  const onData = (chunk: Buffer): void => {
    if (!copy.push(chunk)) body.pause()
  }
  const onEnd = (): void => {
    body.off('close', onClose)
    copy.push(null)
  }
  const onClose = (): void => {
    copy.destroy(new Error('the client stopped sending the body'))
  }
  return copy
}
