/**
 * What yurt-manager's approver does with the requests of a hub: it stays beside `nodehub cluster`.
 * The model has its rules (openyurt pkg/yurtmanager/controller/csrapprover, recognizers, without
 * those of yurt-tunnel); it approves what it recognizes, looks at nobody's identity, and never
 * denies.
 */
import { join } from 'node:path'
import t from 'tap'
import { listAt, textAt } from '../../../src/api/kube/json-at.ts'
import type { Json } from '../../../src/api/kube/json.ts'
import { makeSyncedFolder } from '../../../src/base/folder.ts'
import { StoredPair } from '../../../src/certificates/stored-pair.ts'
import {
  newKey,
  signingRequest,
  type RequestedSubject,
} from '../../../src/certificates/signing-request.ts'
import { loadX509 } from '../../../src/certificates/x509.ts'
import type { ApiCall } from '../../../src/http/client/api-call.ts'
import { RequestedServingCertificate } from '../../../src/http/client/requested-serving-certificate.ts'
import { nodeClient, signedCertificate } from '../../../src/http/client/signed-certificate.ts'
import { rootFolder } from '../../kit/root-folder.ts'

interface RequestSpec {
  readonly signerName: string
  readonly usages: readonly string[]
  /** PEM. */
  readonly request: string
}

const clientSigner = 'kubernetes.io/kube-apiserver-client'
const servingSigner = 'kubernetes.io/kubelet-serving'
const usagesOf = (auth: string): readonly string[] => [
  'digital signature',
  'key encipherment',
  auth,
]

/** What yurt-manager takes a request for, and approves; `undefined`: it leaves it alone. */
async function recognized(spec: RequestSpec): Promise<'client' | 'serving' | undefined> {
  const x509 = await loadX509()
  const request = new x509.Pkcs10CertificateRequest(spec.request)
  const valuesOf = (type: string) =>
    request.subjectName.toJSON().flatMap((part) => part[type] ?? [])
  const [organizations, [commonName = '']] = [valuesOf('O'), valuesOf('CN')]
  const names = request.extensions
    .filter((each) => each instanceof x509.SubjectAlternativeNameExtension)
    .flatMap((each) => each.names.toJSON())
    .filter(({ type }) => type === 'dns' || type === 'ip')
  const hasUsages = (auth: string): boolean =>
    usagesOf(auth).toSorted().join() === [...new Set(spec.usages)].toSorted().join()
  if (!commonName.startsWith('system:node:')) return undefined
  const isServing =
    spec.signerName === servingSigner &&
    organizations.join() === 'system:nodes' &&
    names.length > 0 &&
    hasUsages('server auth')
  const ofTenant = (each: string): boolean =>
    ['openyurt:yurthub', 'system:nodes'].includes(each) || each.startsWith('openyurt:tenant:')
  const isClient =
    spec.signerName === clientSigner &&
    organizations.length >= 2 &&
    organizations.every(ofTenant) &&
    hasUsages('client auth')
  return isServing ? 'serving' : isClient ? 'client' : undefined
}

const commonName = 'system:node:edge-1'
const names = ['kubernetes', '169.254.2.1']
const serving: RequestedSubject = {
  commonName,
  organizations: ['system:nodes'],
  dnsNames: ['kubernetes'],
  ipAddresses: ['169.254.2.1'],
}

const asked = async (
  subject: RequestedSubject,
  signerName: string,
  usages: readonly string[],
): Promise<RequestSpec> => ({
  signerName,
  usages,
  request: await signingRequest(newKey(), subject),
})

void t.test('it recognizes the CSRs of yurthubs', async (t) => {
  const client = { commonName, organizations: ['openyurt:yurthub', 'system:nodes'] }
  const asClient = (subject: RequestedSubject, signer = clientSigner) =>
    asked(subject, signer, usagesOf('client auth'))
  t.equal(await recognized(await asClient(client)), 'client')
  const tenants = { ...client, organizations: ['system:nodes', 'openyurt:tenant:a'] }
  t.equal(await recognized(await asClient(tenants)), 'client')
  const masters = { ...client, organizations: ['system:nodes', 'system:masters'] }
  t.equal(await recognized(await asClient(masters)), undefined)
  t.equal(await recognized(await asked(serving, servingSigner, usagesOf('server auth'))), 'serving')
})

/** The requests of a hub: for its client certificate, and its serving certificate. */
async function requestsOfHub(organizations: readonly string[] = []): Promise<RequestSpec[]> {
  const found: RequestSpec[] = []
  const call: ApiCall = async ({ method, body }) => {
    // Whether it was made before.
    if (method === 'GET') return { status: 404, body: undefined }
    const spec = (body as Readonly<Record<string, Json>> | undefined)?.['spec']
    found.push({
      signerName: textAt(spec, 'signerName'),
      usages: listAt(spec, 'usages').map(String),
      request: Buffer.from(textAt(spec, 'request'), 'base64').toString(),
    })
    throw new Error('it has been seen')
  }
  const patience = { patienceMs: 0, signal: new AbortController().signal }
  await signedCertificate(call, newKey(), nodeClient('edge-1'), patience).catch(() => undefined)
  const folder = join(rootFolder(t), 'pki')
  makeSyncedFolder(folder, 0o700)
  const { promise, resolve } = Promise.withResolvers<string>()
  const certificate = new RequestedServingCertificate({
    nodeName: 'edge-1',
    signer: servingSigner,
    organizations,
    names: () => names,
    stored: new StoredPair(folder, 'nodehub-signed'),
    authorities: () => undefined,
    call: () => call,
    onChange: () => undefined,
    onObtained: () => undefined,
    onFailure: resolve,
  })
  await promise
  await certificate[Symbol.asyncDispose]()
  return found
}

void t.test('it does not recognize the CSRs of nodehub', async (t) => {
  const requests = await requestsOfHub()
  t.match(requests, [
    { signerName: 'kubernetes.io/kube-apiserver-client-kubelet', usages: { length: 2 } },
    { signerName: servingSigner, usages: { length: 2 } },
  ])
  for (const request of requests) t.equal(await recognized(request), undefined, request.signerName)
  for (const request of await requestsOfHub(['openyurt:tenant:a']))
    t.equal(await recognized(request), undefined, request.signerName)
})

void t.test('only the usages exclude the serving CSR', async (t) => {
  const [, request] = await requestsOfHub()
  if (!request) throw new Error('there are two')
  t.equal(await recognized({ ...request, usages: usagesOf('server auth') }), 'serving')
})
