import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import type { Pkcs10CertificateRequest } from '@peculiar/x509'
import { curve } from './keys.ts'
import { signingRequest, type RequestedSubject } from './signing-request.ts'
import { loadX509 } from './x509.ts'

/** A request that no hub makes. The message says what is wrong, as the rest of a sentence. */
export class MalformedRequest extends Error {
  readonly code = 'MALFORMED_REQUEST'
}

/** Some dozens of names. */
const longest = 8 * 1024

const oneBlock =
  /^-----BEGIN CERTIFICATE REQUEST-----\n([A-Za-z0-9+/=\n]+)\n-----END CERTIFICATE REQUEST-----\n?$/

/**
 * Whom a request (PKCS #10, PEM) is to identify. It has to be what `signingRequest` makes of these
 * very names, byte for byte, but for the key and its signature. So it has no other parts, and there
 * are no two ways to read it: the signer, whose parser is another one, sees the same names. Throws
 * `MalformedRequest`.
 */
export async function readSigningRequest(text: string): Promise<RequestedSubject> {
  const [, block] = text.length > longest ? [] : (oneBlock.exec(text) ?? [])
  if (block === undefined) throw new MalformedRequest('is no request in PEM, of a usual length')
  const bytes = Buffer.from(block, 'base64')
  const { subject, publicKey, signature, isSigned } = await parsed(bytes)
  const model = generateKeyPairSync('ec', curve)
  const expected = blockOf(await modelOf(model.privateKey, subject))
  const modelKey = model.publicKey.export({ type: 'spki', format: 'der' })
  const isOfLength = publicKey.length === modelKey.length
  if (isOfLength) publicKey.copy(expected, expected.indexOf(modelKey))
  if (
    !isOfLength ||
    !isOnCurve(publicKey) ||
    !bytes.equals(await withSignature(expected, signature))
  )
    throw new MalformedRequest('is not as a hub makes it')
  if (!isSigned) throw new MalformedRequest('is not signed with its own key')
  return subject
}

async function parsed(bytes: Buffer) {
  try {
    const x509 = await loadX509()
    const request = new x509.Pkcs10CertificateRequest(bytes)
    const found = request.extensions.find(
      (each) => each instanceof x509.SubjectAlternativeNameExtension,
    )
    const names = found?.names.toJSON() ?? []
    const ofType = (type: string): string[] =>
      names.filter((each) => each.type === type).map(({ value }) => String(value))
    return {
      subject: {
        ...subjectOf(request),
        dnsNames: ofType('dns'),
        ipAddresses: ofType('ip'),
      },
      publicKey: Buffer.from(request.publicKey.rawData),
      signature: request.signature,
      isSigned: await request.verify(),
    }
  } catch (cause) {
    throw new MalformedRequest('cannot be read', { cause })
  }
}

function subjectOf({ subjectName }: Pkcs10CertificateRequest) {
  const parts = subjectName.toJSON()
  const valuesOf = (type: string): string[] => parts.flatMap((part) => part[type] ?? [])
  const [commonName = '', ...others] = valuesOf('CN')
  if (others.length > 0) throw new Error('there are several common names')
  return { commonName, organizations: valuesOf('O') }
}

async function modelOf(...[key, subject]: Parameters<typeof signingRequest>): Promise<string> {
  try {
    return await signingRequest(key, subject)
  } catch (cause) {
    throw new MalformedRequest('has names that no request can have', { cause })
  }
}

const blockOf = (pem: string): Buffer => Buffer.from(oneBlock.exec(pem)?.[1] ?? '', 'base64')

/** The request in DER with this signature, whose length is not always the same. */
async function withSignature(request: Buffer, signature: ArrayBuffer): Promise<Buffer> {
  const [{ AsnConvert }, { CertificationRequest }] = await Promise.all([
    import('@peculiar/asn1-schema'),
    import('@peculiar/asn1-csr'),
  ])
  const parts = AsnConvert.parse(request, CertificationRequest)
  parts.signature = signature
  return Buffer.from(AsnConvert.serialize(parts))
}

/** Whether a key of the right length is one of the hub's kind. */
function isOnCurve(spki: Buffer): boolean {
  try {
    const key = createPublicKey({ key: spki, type: 'spki', format: 'der' })
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1'
  } catch {
    return false
  }
}
