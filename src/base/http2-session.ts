import type { Http2Session } from 'node:http2'

/**
 * Releases a closed session. If the peer never acknowledged SETTINGS, Node keeps the session for
 * ever (its `Http2Settings` holds a callback that is bound to it), and through the session's
 * listeners the socket, nghttp2's state and every frame to be sent: 30 to 200 KB that a client
 * could leak with each connection.
 */
export function releaseSession(session: Http2Session): void {
  session.removeAllListeners()
  // Node emits no error after `close`; an unhandled one would end the process.
  session.on('error', ignored)
}

const ignored = (): void => undefined
