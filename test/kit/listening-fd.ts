import type { Server } from 'node:net'

/** The descriptor of a listening socket, which Node keeps in its handle only. */
export const listeningFd = (server: Server): number =>
  (server as unknown as { readonly _handle: { readonly fd: number } })._handle.fd
