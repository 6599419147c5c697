import type { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { connect } from 'node:tls'
import { after, now } from '../../base/clock.ts'
import { authoritiesIn } from '../../certificates/bundle.ts'
import { nameText, namesText, outsideValidity, timeText } from '../../certificates/validity.ts'
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
 * reason; otherwise `cause` itself. Node does not return a certificate that it rejects: this opens
 * another connection to read it, sends nothing on it, and takes at most `withinMs`.
 */
export async function explainTlsFailure(
  cause: unknown,
  origin: string,
  credentials: Credentials,
  withinMs: number,
): Promise<unknown> {
  const failure = openSslError(cause)
  if (failure === undefined) return cause
  const { code, reason } = failure
  const failed = (message: string): Error => new TlsFailure(message, code, cause)
  if (notTls.has(code)) {
    return failed(`${origin} does not speak TLS: is it a port of plain HTTP, or of something else?`)
  }
  if (untimely.has(code) || untrusted.has(code) || code === otherName) {
    const certificate = await certificateOf(origin, credentials, withinMs)
    return failed(`${origin}: ${whyRefused(failure, certificate, credentials)}`)
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

function whyRefused(
  { code, reason }: OpenSslError,
  certificate: X509Certificate | undefined,
  { ca, from }: Credentials,
): string {
  const clock = `this node's clock says ${timeText(now())}`
  if (untimely.has(code)) {
    for (let each = certificate; each !== undefined; each = issuerOf(each)) {
      const outside = outsideValidity(each, now())
      if (outside === undefined) continue
      const whose = each === certificate ? 'its certificate' : 'the certificate of its issuer'
      return `${whose} (${namesText(each)}) ${outside}, and ${clock}: renew it there, or set the clock here`
    }
    const what = code === 'CERT_HAS_EXPIRED' ? 'has expired' : 'is not valid yet'
    return `its certificate, or the CA that it is checked by (${from?.ca ?? "the system's"}), ${what}: ${clock}`
  }
  const what = certificate ? `its certificate (${namesText(certificate)})` : 'its certificate'
  if (code === otherName) return `${what} is not for this address: ${reason ?? 'it names others'}`
  if (ca === undefined)
    return `${what} is signed by none of the system's CAs: give the cluster's CA, with --upstream-ca or in the kubeconfig`
  const wrongCa = "is another cluster's, or an old one"
  const unsigned = `${what} is not signed by the CA in ${from?.ca ?? 'use'}`
  const missing = certificate && missingIssuer(certificate, authoritiesIn(ca))
  return missing === undefined
    ? `${unsigned}: that ${wrongCa}`
    : `${unsigned}, and the server does not send the certificate of ${missing}: add that to the chain which it sends, or to the CA file; or the CA ${wrongCa}`
}

/**
 * The name of the issuer that neither the chain of a server nor the CA has; `undefined` where the
 * chain ends with a root, or with the name of an authority of the CA, which then has another key.
 */
function missingIssuer(
  certificate: X509Certificate,
  authorities: readonly X509Certificate[],
): string | undefined {
  let last = certificate
  for (let each = issuerOf(last); each !== undefined; each = issuerOf(last)) last = each
  const { issuer } = last
  const isKnown = [last, ...authorities].some(({ subject }) => subject === issuer)
  return isKnown ? undefined : nameText(issuer)
}

/** The issuer in the chain that the server sent; `undefined` at its end. */
function issuerOf(certificate: X509Certificate): X509Certificate | undefined {
  const { issuerCertificate } = certificate
  return issuerCertificate === undefined ||
    issuerCertificate.fingerprint256 === certificate.fingerprint256
    ? undefined
    : issuerCertificate
}

/** The server's certificate, unverified; `undefined` where it cannot be read in time. */
function certificateOf(
  origin: string,
  { serverName }: Credentials,
  withinMs: number,
): Promise<X509Certificate | undefined> {
  const { hostname, port } = new URL(origin)
  const host = hostname.replace(/^\[|\]$/g, '')
  const { promise, resolve } = Promise.withResolvers<X509Certificate | undefined>()
  const name = serverName ?? (isIP(host) === 0 ? host : undefined)
  const socket = connect({
    host,
    port: Number(port || 443),
    ...(name !== undefined && { servername: name }),
    rejectUnauthorized: false,
  })
  const patience = after(withinMs, () => socket.destroy())
  socket.once('secureConnect', () => {
    resolve(socket.getPeerX509Certificate())
    socket.destroy()
  })
  socket.once('error', () => undefined)
  socket.once('close', () => {
    patience[Symbol.dispose]()
    resolve(undefined)
  })
  return promise
}
