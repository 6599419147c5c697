import { now } from '../../base/clock.ts'
import { timeText } from '../../certificates/validity.ts'
import type { Credentials } from '../../config/credentials.ts'

/** TLS with a server failed. The message is for the operator; the code is that of the cause. */
class TlsFailure extends Error {
  readonly code: string
  constructor(message: string, code: string, cause: unknown) {
    super(message, { cause })
    this.code = code
  }
}

const untimely = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID'])
const untrusted = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_SIGNATURE_FAILURE',
])
const otherName = 'ERR_TLS_CERT_ALTNAME_INVALID'

/** OpenSSL's errors for bytes that are not TLS. */
const notTls = new Set([
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ERR_SSL_PACKET_LENGTH_TOO_LONG',
  'ERR_SSL_HTTP_REQUEST',
  'ERR_SSL_UNKNOWN_PROTOCOL',
])

interface OpenSslError {
  readonly code: string
  readonly reason?: string
}

/**
 * Why a connection to `origin` with these credentials failed, for the operator, where TLS is the
 * reason; otherwise `cause` itself.
 */
export function explainTlsFailure(
  cause: unknown,
  origin: string,
  credentials: Credentials,
): unknown {
  const failure = openSslError(cause)
  if (failure === undefined) return cause
  const { code, reason } = failure
  const failed = (message: string): Error => new TlsFailure(message, code, cause)
  if (notTls.has(code)) {
    return failed(`${origin} does not speak TLS: is it a port of plain HTTP, or of something else?`)
  }
  if (untimely.has(code) || untrusted.has(code) || code === otherName) {
    return failed(`${origin}: ${whyRefused(failure, credentials)}`)
  }
  if (reason !== undefined && /alert/i.test(reason)) {
    const file = credentials.from?.certificate
    const which = file === undefined ? 'no client certificate was shown' : `it was shown ${file}`
    return failed(`${origin} refuses the TLS connection: ${reason}; ${which}`)
  }
  return failed(`TLS with ${origin} failed: ${reason ?? code}`)
}

function openSslError(cause: unknown): OpenSslError | undefined {
  if (!(cause instanceof Error)) return undefined
  const { code, reason } = cause as Partial<OpenSslError>
  if (code === undefined) return undefined
  const isTls =
    code === 'EPROTO' ||
    code.startsWith('ERR_SSL_') ||
    untimely.has(code) ||
    untrusted.has(code) ||
    code === otherName
  return isTls ? { code, ...(reason !== undefined && { reason }) } : undefined
}

function whyRefused({ code, reason }: OpenSslError, { ca, from }: Credentials): string {
  if (untimely.has(code)) {
    const what = code === 'CERT_HAS_EXPIRED' ? 'has expired' : 'is not valid yet'
    return `its certificate, or that of its issuer, ${what}, and this node's clock says ${timeText(now())}: renew it there, or set the clock here`
  }
  if (code === otherName)
    return `its certificate is not for this address: ${reason ?? 'it names others'}`
  return ca === undefined
    ? "its certificate is signed by none of the system's CAs: give the cluster's CA, with --upstream-ca or in the kubeconfig"
    : `its certificate is not signed by the CA in ${from?.ca ?? 'use'}: that is another cluster's, or an old one, or the server does not send the certificates between the two`
}
