import { createHmac, createPublicKey } from 'node:crypto'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import { readSigningRequest } from '../../src/certificates/read-signing-request.ts'
import { loadX509 } from '../../src/certificates/x509.ts'
import { every } from '../../src/base/clock.ts'
import { hashOfPublicKey } from '../../src/config/bootstrap.ts'
import type { GVR } from '../../src/api/kube/gvk.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { listAt, textAt } from '../../src/api/kube/json-at.ts'
import { configMaps } from '../../src/api/kube/resources.ts'
import type { Attributes } from '../../src/sandbox/authentication.ts'
import { startCloud, type CloudServer } from './cloud.ts'
import type { Teardown } from './wire/wire.ts'

export const joinToken = 'abcdef.0123456789abcdef'

const signingRequests: GVR = {
  group: 'certificates.k8s.io',
  version: 'v1',
  resource: 'certificatesigningrequests',
}

/** The detached JWS of a text, as bootstrapsigner makes it. */
export function detachedSignature(text: string, token: string): string {
  const [id = '', secret = ''] = token.split('.')
  const base64 = (part: string): string => Buffer.from(part).toString('base64url')
  const header = base64(JSON.stringify({ alg: 'HS256', kid: id }))
  const mac = createHmac('sha256', secret)
    .update(`${header}.${base64(text)}`)
    .digest('base64url')
  return `${header}..${mac}`
}

/** The kubeconfig in cluster-info, as kubeadm writes it. */
export const clusterInfoOf = (ca: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: '',
        cluster: {
          'certificate-authority-data': Buffer.from(ca).toString('base64'),
          server: 'https://api.example:6443',
        },
      },
    ],
    contexts: null,
    'current-context': '',
    preferences: {},
    users: null,
  })

/** A cluster that nodes can join with a bootstrap token. */
export class JoinableCloud {
  readonly cloud: CloudServer
  readonly authority: CertificateAuthority
  /** Of new certificates. */
  lifetimeMs = 24 * 3_600_000
  /** Follows each new certificate, PEM. */
  chain = ''
  /** What becomes of new requests; `wait` leaves them alone. */
  verdict: 'sign' | 'deny' | 'wait' = 'sign'

  constructor(cloud: CloudServer, authority: CertificateAuthority) {
    this.cloud = cloud
    this.authority = authority
  }

  get caHash(): string {
    return hashOfPublicKey(this.authority.certificate)
  }

  /** The flags of a hub that joins. */
  get flags(): readonly string[] {
    return [
      '--bootstrap-mode=token',
      `--join-token=${joinToken}`,
      `--discovery-token-ca-cert-hash=${this.caHash}`,
    ]
  }

  /** By whom the requests for certificates were made, in order. */
  get requesters(): readonly string[] {
    return this.cloud.sandbox.requests
      .filter(({ method, path }) => method === 'POST' && path.endsWith('signingrequests'))
      .map(({ user }) => user?.name ?? 'unauthenticated')
  }

  get requests(): readonly JsonObject[] {
    return this.cloud.sandbox.list(signingRequests) as unknown as readonly JsonObject[]
  }

  /** Accepts this bootstrap token, and signs cluster-info with it. */
  accept(token: string, signedText?: string): void {
    const { sandbox } = this.cloud
    const [id = ''] = token.split('.')
    const groups = ['system:bootstrappers', 'system:bootstrappers:kubeadm:default-node-token']
    sandbox.accept(token, { name: `system:bootstrap:${id}`, groups })
    this.announce(this.authority.certificate, token, signedText)
  }

  /** Names this CA in cluster-info, signed with a token. */
  announce(ca: string, token: string, signedText?: string): void {
    const { sandbox } = this.cloud
    const [id = ''] = token.split('.')
    const kubeconfig = clusterInfoOf(ca)
    const before = sandbox.get(configMaps, 'cluster-info', 'kube-public')
    const data = {
      ...(before?.['data'] as JsonObject | undefined),
      kubeconfig,
      [`jws-kubeconfig-${id}`]: detachedSignature(signedText ?? kubeconfig, token),
    }
    const metadata = { name: 'cluster-info', namespace: 'kube-public' }
    if (before) sandbox.update(configMaps, { metadata, data })
    else sandbox.create(configMaps, { metadata, data })
  }

  /** Does with the requests that wait what is to be done. */
  async settle(): Promise<void> {
    for (const request of this.requests) {
      const isSettled =
        textAt(request, 'status', 'certificate') !== '' ||
        listAt(request, 'status', 'conditions').length > 0
      if (isSettled || this.verdict === 'wait') continue
      const isDenied = this.verdict === 'deny'
      const condition = {
        type: isDenied ? 'Denied' : 'Approved',
        status: 'True',
        reason: 'ByTest',
        message: 'as it was to be',
      }
      const certificate = isDenied ? undefined : await this.#signed(request)
      const status = { conditions: [condition], ...(certificate && { certificate }) }
      this.cloud.sandbox.update(signingRequests, { ...request, status }, 'status')
    }
  }

  async #signed(request: JsonObject): Promise<string> {
    const pem = Buffer.from(textAt(request, 'spec', 'request'), 'base64').toString()
    const { Pkcs10CertificateRequest } = await loadX509()
    const { publicKey } = new Pkcs10CertificateRequest(pem)
    const key = createPublicKey({
      key: Buffer.from(publicKey.rawData),
      format: 'der',
      type: 'spki',
    })
    const certificate = await this.authority.certify(key, {
      ...(await readSigningRequest(pem)),
      usage: textAt(request, 'spec', 'signerName').endsWith('serving') ? 'server' : 'client',
      lifetimeMs: this.lifetimeMs,
    })
    return Buffer.from(certificate + this.chain).toString('base64')
  }
}

/** Anonymous callers read cluster-info and health, as in a cluster of kubeadm. */
function mayDo({ user, path, resource, name }: Attributes): boolean {
  if (user.name !== 'system:anonymous') return true
  return resource === undefined
    ? ['/readyz', '/livez', '/version'].includes(path)
    : resource === 'configmaps' && name === 'cluster-info'
}

/** Starts such a cluster, in which `joinToken` is good. */
export async function startJoinable(
  t: Teardown,
  given?: CertificateAuthority,
): Promise<JoinableCloud> {
  const authority = given ?? (await CertificateAuthority.create('cluster-ca'))
  const cloud = await startCloud(t, { tls: true, anonymous: true, authority, authorizer: mayDo })
  const joinable = new JoinableCloud(cloud, authority)
  joinable.accept(joinToken)
  let settling: Promise<void> | undefined
  const signer = every(10, () => {
    settling ??= joinable.settle().finally(() => (settling = undefined))
  })
  t.teardown(() => signer[Symbol.dispose]())
  return joinable
}
