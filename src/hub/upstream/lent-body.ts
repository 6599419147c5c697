import { Readable } from 'node:stream'

/**
 * A stream of its own with the bytes of `body`, for one attempt. undici destroys a request's body
 * when the request ends; were that the client's own stream, its connection would be destroyed with
 * it, and the next attempt would have no body.
 */
export function lentBody(body: Readable): Readable {
  let begun = false
  const copy = new Readable({
    read: () => {
      // An empty body may have ended before anybody read it.
      if (body.readableEnded) {
        if (body.readableDidRead) copy.destroy(new Error('the body has been read before'))
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
  // undici does not listen to the body of a request that was given up before its turn came, but
  // asks it how long it is.
  copy.on('error', () => undefined)
  const onData = (chunk: Buffer): void => {
    if (!copy.push(chunk)) body.pause()
  }
  const onEnd = (): void => {
    body.off('close', onClose)
    copy.push(null)
  }
  const onClose = (): void => {
    copy.destroy(new Error('the client has stopped sending'))
  }
  return copy
}
