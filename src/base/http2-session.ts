import type { Http2Session } from 'node:http2'

/**
 * To be called when a session has closed. Where the peer never acknowledged SETTINGS, Node keeps
 * the session for ever (its `Http2Settings` holds a callback that is bound to it), and through the
 * session's listeners the socket, nghttp2's state and every frame that waited to be sent: some 30
 * to 200 KB that a stranger can have again with each connection.
 */
export function releaseSession(session: Http2Session): void {
  session.removeAllListeners()
  // Node raises none after `close`; but one that nobody listens to would end the process.
  session.on('error', ignored)
}

const ignored = (): void => undefined
