import { Readable } from 'node:stream'

/**
 * The same bytes in a stream of their own. Whoever ends an attempt destroys the body it was given; this one belongs to the client, whose
 * connection would go with it, and to the next attempt.
 */
export function lentBody(body: Readable): Readable {
  let begun = false
  const copy = new Readable({
    read: () => {
      // A body of nothing may have come to its end before anybody asked for it.
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
