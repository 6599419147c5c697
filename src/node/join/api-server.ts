import { X509Certificate } from 'node:crypto'
import { request as plainly } from 'node:http'
import { request as overTls } from 'node:https'
import { wholeAnswer } from '../../base/whole-answer.ts'
import { explainTlsFailure } from '../../http/client/tls-failure.ts'
import { readCredentials, type Credentials } from '../../config/credentials.ts'
import { parseKubeconfig, type Kubeconfig, type Part } from '../../config/kubeconfig.ts'
import { parseJson, type Json } from '../../api/kube/json.ts'
import type { NodeFiles } from './node-files.ts'

/** The answer of an API server. */
export interface ApiResponse {
  readonly status: number
  /** `undefined` where it is no JSON. */
  readonly body: Json | undefined
}

const patienceMs = 15_000

/** An API server, with the credentials of a kubelet's kubeconfig. */
export class ApiServer {
  readonly #config: Kubeconfig
  readonly #credentials: Credentials

  /** Throws where the kubeconfig, or a file that it names, cannot be used. */
  constructor(files: NodeFiles, kubeconfig: string) {
    const read = (path: string): string => files.text(path)
    this.#config = parseKubeconfig(read(kubeconfig), kubeconfig)
    this.#credentials = readCredentials({ kind: 'kubeconfig', file: kubeconfig }, read)
  }

  get address(): string {
    return this.#config.server.origin
  }

  /** The files of the certificate and of its key, where the kubeconfig names files. */
  get certificateFile(): string | undefined {
    return fileOf(this.#config.clientCertificate)
  }

  get keyFile(): string | undefined {
    return fileOf(this.#config.clientKey)
  }

  /** The node that the certificate speaks for; `undefined` where it is no node's. */
  get nodeName(): string | undefined {
    const chain = this.#credentials.certificate?.chain
    if (chain === undefined) return undefined
    return /^CN=system:node:(.+)$/m.exec(new X509Certificate(chain).subject)?.[1]
  }

  /** Rejects where there was no answer, with a message for people. */
  async ask(method: string, path: string, patch?: object): Promise<ApiResponse> {
    const { ca, certificate, token, serverName } = this.#credentials
    const { server } = this.#config
    const asking = (server.protocol === 'http:' ? plainly : overTls)(new URL(path, server), {
      method,
      agent: false,
      headers: {
        accept: 'application/json',
        ...(patch && { 'content-type': 'application/merge-patch+json' }),
        ...(token && { authorization: `Bearer ${token.reveal()}` }),
      },
      ...(ca !== undefined && { ca }),
      ...(certificate && { cert: certificate.chain, key: certificate.key.reveal() }),
      ...(serverName !== undefined && { servername: serverName }),
    })
    asking.end(patch && JSON.stringify(patch))
    const { status, text } = await wholeAnswer(asking, patienceMs).catch(async (cause: unknown) => {
      throw await explainTlsFailure(cause, server.origin, this.#credentials, patienceMs)
    })
    return { status, body: parseJson(text) }
  }
}

const fileOf = (part: Part<unknown> | undefined): string | undefined =>
  part && 'file' in part ? part.file : undefined
