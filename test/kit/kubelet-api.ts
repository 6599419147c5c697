import type { Socket } from 'node:net'
import { createServer } from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import type { Json } from '../../src/api/kube/json.ts'
import { valueAt } from '../../src/api/kube/json-at.ts'
import type { Kubelet } from '../../src/hub/answers/at-kubelet.ts'
import type { Client } from './client.ts'
import { portOf } from './wire/listening.ts'
import type { Teardown } from './wire/wire.ts'

export interface KubeletApiOptions {
  readonly nodeName: string
  /** PEM: whose certificates it believes. */
  readonly clientCa: string
  /** Where it asks whether a caller may use it. */
  readonly reviews: () => Client
  readonly answer: (request: IncomingMessage, response: ServerResponse) => void
  readonly upgrade?: (request: IncomingMessage, socket: Socket) => void
}

/** What a kubelet serves on its port 10250, as far as it authenticates, authorizes and upgrades. */
export interface KubeletApi {
  readonly port: number
  /** Method and URL of what was authorized, in order. */
  readonly requests: string[]
}

/** Starts one on loopback, which vouches for its own certificate, as kubelets do. */
export async function startKubeletApi(
  t: Teardown,
  options: KubeletApiOptions,
): Promise<KubeletApi> {
  const own = await CertificateAuthority.create('kubelet')
  const { certificate, key } = await own.issue({
    commonName: options.nodeName,
    organizations: [],
    usage: 'server',
  })
  const server = createServer({
    cert: certificate,
    key,
    ca: options.clientCa,
    requestCert: true,
    rejectUnauthorized: false,
  })
  const requests: string[] = []
  server.on('request', (request, response) => {
    void authorized(request, options).then((code) => {
      if (code !== 200) return response.writeHead(code).end()
      requests.push(`${request.method} ${request.url}`)
      return options.answer(request, response)
    })
  })
  server.on('upgrade', (request: IncomingMessage, socket: Socket) => {
    void authorized(request, options).then((code) => {
      if (code !== 200) return socket.end(`HTTP/1.1 ${code} No\r\nContent-Length: 0\r\n\r\n`)
      requests.push(`${request.method} ${request.url}`)
      return options.upgrade?.(request, socket)
    })
  })
  return { port: await portOf(t, server), requests }
}

/** As a kubelet in the mode Webhook: 401 without a certificate, 403 where the review says no. */
async function authorized(
  { socket, method }: IncomingMessage,
  { nodeName, reviews }: KubeletApiOptions,
): Promise<number> {
  const { authorized: isKnown } = socket as TLSSocket
  if (!isKnown) return 401
  const { subject } = (socket as TLSSocket).getPeerCertificate()
  const review = {
    kind: 'SubjectAccessReview',
    apiVersion: 'authorization.k8s.io/v1',
    metadata: {},
    spec: {
      user: String(subject.CN),
      groups: [String(subject.O), 'system:authenticated'],
      resourceAttributes: {
        verb: method === 'POST' ? 'create' : 'get',
        version: 'v1',
        resource: 'nodes',
        subresource: 'proxy',
        name: nodeName,
      },
    },
    status: { allowed: false },
  }
  const { status, body } = await reviews().send(
    '/apis/authorization.k8s.io/v1/subjectaccessreviews',
    { method: 'POST', body: review },
  )
  if (status !== 201) return 500
  const answer = JSON.parse(body.toString()) as Json
  return valueAt(answer, 'status', 'allowed') === true ? 200 : 403
}

/** A kubelet that nothing reaches. */
export const noKubelet: Kubelet = {
  get: () => Promise.reject(new Error('a request reached the kubelet')),
  upgrade: () => Promise.reject(new Error('a request reached the kubelet')),
}
