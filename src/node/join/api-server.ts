import { X509Certificate } from 'node:crypto'
import { apiCall, type ApiResponse } from '../../http/client/api-call.ts'
import { readCredentials, type Credentials } from '../../config/credentials.ts'
import { parseKubeconfig, type Kubeconfig, type Part } from '../../config/kubeconfig.ts'
import type { NodeFiles } from './node-files.ts'

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
  ask(method: string, path: string, patch?: object): Promise<ApiResponse> {
    return apiCall(
      this.#config.server,
      this.#credentials,
    )({
      method,
      path,
      ...(patch && { body: patch, contentType: 'application/merge-patch+json' }),
    })
  }
}

const fileOf = (part: Part<unknown> | undefined): string | undefined =>
  part && 'file' in part ? part.file : undefined
