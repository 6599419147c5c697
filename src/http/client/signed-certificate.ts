import { createPublicKey, hash, X509Certificate, type KeyObject } from 'node:crypto'
import { elapsed, jitter, sleep } from '../../base/clock.ts'
import { pemOfKey } from '../../certificates/keys.ts'
import { signingRequest, type RequestedSubject } from '../../certificates/signing-request.ts'
import { isUsablePair } from '../../certificates/usable-pair.ts'
import { isObject, type Json } from '../../api/kube/json.ts'
import { listAt, textAt } from '../../api/kube/json-at.ts'
import { ApiRefusal, type ApiCall } from './api-call.ts'

/** The parts of a request to a signer (certificates.k8s.io/v1). */
export interface CertificateSpec extends RequestedSubject {
  readonly signerName: string
  readonly usages: readonly string[]
}

/** A node's client certificate, as a kubelet requests it: controllers of the cluster sign it. */
export const nodeClient = (nodeName: string): CertificateSpec => ({
  signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
  usages: ['digital signature', 'client auth'],
  commonName: `system:node:${nodeName}`,
  organizations: ['system:nodes'],
})

export interface SigningPatience {
  /**
   * How long a request may wait for its certificate; the same request is looked at again later. 0:
   * the request was probably made before, and is looked at once.
   */
  readonly patienceMs: number
  readonly signal: AbortSignal
}

/** The request was denied, or the signer refused it: another one needs another key. */
export class RequestDenied extends Error {
  readonly code = 'REQUEST_DENIED'
}

/** The request was deleted before it was decided. */
class RequestGone extends Error {
  readonly code = 'REQUEST_GONE'
}

/** The request waits for approval, or for its signer. */
export class RequestPending extends Error {
  readonly code = 'REQUEST_PENDING'
}

const collection = '/apis/certificates.k8s.io/v1/certificatesigningrequests'

/** The time between two looks at a request that waits, at first and at most. */
const firstLookMs = 500
const longestLookMs = 5_000

/**
 * Has a certificate signed for a private key by a CertificateSigningRequest, and resolves with it
 * and its chain, PEM. The request is named after key and content: made again, it is found, and gets
 * the certificate that was signed meanwhile. Rejects with `RequestDenied`, and where no API server
 * answers, the request is refused, or is not signed in time.
 */
export async function signedCertificate(
  call: ApiCall,
  key: KeyObject,
  { signerName, usages, ...subject }: CertificateSpec,
  { patienceMs, signal }: SigningPatience,
): Promise<string> {
  const publicKey = createPublicKey(key).export({ type: 'spki', format: 'der' })
  const content = JSON.stringify({ signerName, usages, subject })
  const digest = hash('sha256', Buffer.concat([publicKey, Buffer.from(content)]))
  const name = `nodehub-${digest.slice(0, 40)}`
  const began = elapsed()
  const make = async (): Promise<Json> =>
    made(call, name, {
      request: Buffer.from(await signingRequest(key, subject)).toString('base64'),
      signerName,
      usages,
    })
  let object = (patienceMs === 0 ? await present(call, name) : undefined) ?? (await make())
  for (let wait = firstLookMs; ; wait = Math.min(2 * wait, longestLookMs)) {
    const certificate = certificateOf(object, name)
    if (certificate !== undefined) return checked(certificate, key, subject.commonName)
    if (elapsed() - began >= patienceMs || signal.aborted) {
      throw new RequestPending(
        `the CertificateSigningRequest ${name} is not ${isApproved(object) ? 'signed' : 'approved'} yet (kubectl certificate approve ${name})`,
      )
    }
    await sleep(jitter(wait / 2, wait), signal)
    object = await found(call, name)
  }
}

async function made(call: ApiCall, name: string, spec: object): Promise<Json> {
  const request = {
    method: 'POST',
    path: collection,
    body: {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { name },
      spec,
    },
  }
  const answer = await call(request)
  if (answer.status === 409) return found(call, name)
  if (answer.status !== 201 || !isObject(answer.body))
    throw new ApiRefusal('the API server', request, answer)
  return answer.body
}

async function found(call: ApiCall, name: string): Promise<Json> {
  const object = await present(call, name)
  if (object === undefined)
    throw new RequestGone(`the CertificateSigningRequest ${name} was deleted`)
  return object
}

/** `undefined` where there is none: the cluster deletes old ones. */
async function present(call: ApiCall, name: string): Promise<Json | undefined> {
  const request = { method: 'GET', path: `${collection}/${name}` }
  const answer = await call(request)
  if (answer.status === 404) return undefined
  if (answer.status !== 200 || !isObject(answer.body))
    throw new ApiRefusal('the API server', request, answer)
  return answer.body
}

const conditionsOf = (object: Json): readonly Json[] => listAt(object, 'status', 'conditions')

const isApproved = (object: Json): boolean =>
  conditionsOf(object).some((each) => textAt(each, 'type') === 'Approved')

/** `undefined` while there is none. Throws `RequestDenied`. */
function certificateOf(object: Json, name: string): string | undefined {
  for (const condition of conditionsOf(object)) {
    const type = textAt(condition, 'type')
    if (type !== 'Denied' && type !== 'Failed') continue
    const [reason, message] = [textAt(condition, 'reason'), textAt(condition, 'message')]
    const why = [reason, message.slice(0, 500)].filter(Boolean).join(': ')
    throw new RequestDenied(
      `the CertificateSigningRequest ${name} was ${type.toLowerCase()}: ${why}`,
    )
  }
  const certificate = textAt(object, 'status', 'certificate')
  return certificate === '' ? undefined : Buffer.from(certificate, 'base64').toString()
}

/** Throws `RequestDenied` for an unusable certificate. */
function checked(certificate: string, key: KeyObject, commonName: string): string {
  try {
    const leaf = new X509Certificate(certificate)
    if (
      isUsablePair(certificate, pemOfKey(key)) &&
      leaf.subject.split('\n').includes(`CN=${commonName}`)
    )
      return certificate
  } catch {
    // No certificate at all.
  }
  throw new RequestDenied(`the signer issued no certificate of ${commonName} for the key`)
}
