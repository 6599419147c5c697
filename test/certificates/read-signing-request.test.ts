import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import { privateCryptoKey, publicCryptoKey, signature } from '../../src/certificates/keys.ts'
import { readSigningRequest } from '../../src/certificates/read-signing-request.ts'
import {
  newKey,
  signingRequest,
  type RequestedSubject,
} from '../../src/certificates/signing-request.ts'
import { loadX509 } from '../../src/certificates/x509.ts'

const x509 = await loadX509()

const ofHub: RequestedSubject = {
  commonName: 'system:node:edge-1',
  organizations: ['system:nodes'],
  dnsNames: ['kubernetes', 'kubernetes.default.svc'],
  ipAddresses: ['169.254.2.1', 'fd00::2:1'],
}

type Params = Parameters<typeof x509.Pkcs10CertificateRequestGenerator.create>[0]

/** A request in which not all is as a hub makes it. */
async function made(changes: Partial<Params>, curve = 'P-256'): Promise<string> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: curve })
  const algorithm = { name: 'ECDSA', namedCurve: curve }
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: [{ O: ['system:nodes'] }, { CN: [ofHub.commonName] }],
    keys: {
      privateKey: privateKey.toCryptoKey(algorithm, true, ['sign']),
      publicKey: publicKey.toCryptoKey(algorithm, true, ['verify']),
    },
    signingAlgorithm: signature,
    extensions: [new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: 'kubernetes' }])],
    ...changes,
  })
  return `${request.toString('pem')}\n`
}

void t.test('a hub’s own CSR is read', async (t) => {
  t.strictSame(await readSigningRequest(await signingRequest(newKey(), ofHub)), ofHub)
  t.match(await readSigningRequest(await made({})), { dnsNames: ['kubernetes'] })
  const nameless = { ...ofHub, dnsNames: [], ipAddresses: [] }
  t.strictSame(await readSigningRequest(await signingRequest(newKey(), nameless)), nameless)
  const long = { ...ofHub, dnsNames: Array.from({ length: 40 }, (_, i) => `name-${i}.example`) }
  t.strictSame(await readSigningRequest(await signingRequest(newKey(), long)), long)
})

/** As this release made it: later ones must read it, and be read by this one. */
const ofThisRelease = `-----BEGIN CERTIFICATE REQUEST-----
MIIBSDCB7gIBADA0MRUwEwYDVQQKEwxzeXN0ZW06bm9kZXMxGzAZBgNVBAMTEnN5
c3RlbTpub2RlOmVkZ2UtMTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABMvDZHyz
4zOyZmG9qPUv3upkqrSCA3qKdNYsrVSj+Yxfhg8oQd9UT0dgTOSbd310hkqlYUvS
ltyeXFQ7FsWV/zigWDBWBgkqhkiG9w0BCQ4xSTBHMEUGA1UdEQQ+MDyCCmt1YmVy
bmV0ZXOCFmt1YmVybmV0ZXMuZGVmYXVsdC5zdmOHBKn+AgGHEP0AAAAAAAAAAAAA
AAACAAEwCgYIKoZIzj0EAwIDSQAwRgIhAJLOTZG4EI7Dx87hvIyS670mhNTSVzJN
y6ZfOkx8MBbGAiEAnoOtvdsjwyQga308cKRVPdoeFzUhcP04zB27VA8p9zA=
-----END CERTIFICATE REQUEST-----
`

void t.test('the CSR of this release is read', async (t) => {
  t.strictSame(await readSigningRequest(ofThisRelease), ofHub)
})

void t.test('a CSR with anything else in it is refused', async (t) => {
  const { SubjectAlternativeNameExtension: Names } = x509
  const cn = { CN: [ofHub.commonName] }
  const requests: Readonly<Record<string, Promise<string>>> = {
    'another order': made({ name: [cn, { O: ['system:nodes'] }] }),
    'two parts of the name in one': made({ name: [{ O: ['system:nodes'], ...cn }] }),
    'two common names': made({ name: [{ O: ['system:nodes'] }, cn, { CN: ['admin'] }] }),
    'a further part of the name': made({ name: [{ O: ['system:nodes'] }, { OU: ['a'] }, cn] }),
    'a URI': made({ extensions: [new Names([{ type: 'url', value: 'spiffe://a' }])] }),
    'an e-mail address': made({ extensions: [new Names([{ type: 'email', value: 'a@b' }])] }),
    'names twice': made({
      extensions: ['kubernetes', 'a'].map((value) => new Names([{ type: 'dns', value }])),
    }),
    'names that are critical': made({
      extensions: [new Names([{ type: 'dns', value: 'kubernetes' }], true)],
    }),
    'an authority’s rights': made({
      extensions: [
        new Names([{ type: 'dns', value: 'kubernetes' }]),
        new x509.BasicConstraintsExtension(true),
      ],
    }),
    'a password': made({ attributes: [new x509.ChallengePasswordAttribute('secret')] }),
    'a larger key': made({}, 'P-384'),
  }
  for (const [what, request] of Object.entries(requests)) {
    await t.rejects(readSigningRequest(await request), { code: 'MALFORMED_REQUEST' }, what)
  }
})

void t.test('a CSR with a name in another string type is refused', async (t) => {
  const request = await signingRequest(newKey(), ofHub)
  const der = Buffer.from(request.split('\n').slice(1, -2).join(''), 'base64')
  const ia5String = 0x16
  der[der.indexOf('system:nodes') - 2] = ia5String
  const changed = request.replace(/(?<=-----\n)[^-]+/, `${der.toString('base64')}\n`)
  await t.rejects(readSigningRequest(changed), { message: 'is not as a hub makes it' })
})

void t.test('a CSR with non-DER lengths or trailing data is refused', async (t) => {
  const der = Buffer.from(ofThisRelease.split('\n').slice(1, -2).join(''), 'base64')
  const longer = Buffer.concat([Buffer.from([0x30, 0x83, 0]), der.subarray(2)])
  for (const changed of [Buffer.concat([der, Buffer.from([5, 0])]), longer]) {
    const text = ofThisRelease.replace(/(?<=-----\n)[^-]+/, `${changed.toString('base64')}\n`)
    await t.rejects(readSigningRequest(text), { code: 'MALFORMED_REQUEST' })
  }
})

void t.test('a CSR not signed with its own key is refused', async (t) => {
  const [own, other] = [newKey(), generateKeyPairSync('ec', { namedCurve: 'P-256' })]
  const request = await made({
    keys: { privateKey: privateCryptoKey(own), publicKey: publicCryptoKey(other.publicKey) },
  })
  await t.rejects(readSigningRequest(request), { message: 'is not signed with its own key' })
})

void t.test('text other than a CSR is refused', async (t) => {
  const request = await signingRequest(newKey(), ofHub)
  for (const text of [
    '',
    'a',
    request + request,
    `before\n${request}`,
    request.replaceAll('CERTIFICATE REQUEST', 'CERTIFICATE'),
    request.replace(/\n[^-\n]+\n-----END/, '\n-----END'),
    request.replaceAll('\n', '\n\n'.repeat(4_000)),
    `-----BEGIN CERTIFICATE REQUEST-----\n${'MIAw'.repeat(1_500)}\n-----END CERTIFICATE REQUEST-----\n`,
  ])
    await t.rejects(readSigningRequest(text), { code: 'MALFORMED_REQUEST' }, text.slice(0, 60))
})
