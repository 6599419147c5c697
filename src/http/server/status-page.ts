import type { Peer, WireReply } from '../exchange/exchange.ts'
import { isLoopback } from '../../api/request/host-check.ts'
import { opsReply } from './ops-reply.ts'

/** A file of the status page. It holds nothing of the hub: that is read from the inspections. */
export interface PageFile {
  readonly type: string
  readonly content: Uint8Array
}

/** The page loads nothing of others, is framed by no page, and makes no HTML of text. */
const policy = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join('; '),
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
}

/** The answer to a GET of `path`; `undefined` where that is no file of the page. */
export function pageReply(
  files: ReadonlyMap<string, PageFile>,
  path: string,
  { localAddress }: Peer,
): WireReply | undefined {
  const file = files.get(path)
  if (!file) return undefined
  return isLoopback(localAddress)
    ? opsReply(200, file.content, { 'Content-Type': file.type, ...policy })
    : opsReply(403, 'the status page is served on loopback only\n')
}
