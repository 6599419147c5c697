import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { request as plainRequest } from 'node:http'
import type { Socket } from 'node:net'
import type { CertificateFiles } from './pki.ts'

export interface Answer {
  readonly status: number
  readonly body: Buffer
  /** Texts of its Warning headers (RFC 7234 section 5.5). */
  readonly warnings: readonly string[]
  /** The body as JSON; the test knows what it asked for. */
  readonly json: () => KubeObject
}

/** As much of an API object as tests look at. */
export interface KubeObject {
  readonly kind?: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly uid?: string
    readonly resourceVersion?: string
    readonly generation?: number
  }
  readonly spec?: { readonly hostNetwork?: boolean; readonly activeDeadlineSeconds?: number }
  readonly status?: {
    readonly observedGeneration?: number
    readonly phase?: string
    readonly hostIP?: string
    readonly podIP?: string
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
    readonly containerStatuses?: readonly ContainerStatus[]
  }
  readonly items?: readonly KubeObject[]
}

export interface ContainerStatus {
  readonly name: string
  readonly containerID?: string
  readonly ready: boolean
  readonly restartCount: number
}

/** Asks one server as one client; every request may use a connection kept from the one before. */
export class ApiClient {
  readonly #agent: Agent | undefined
  readonly #url: string

  /**
   * Without `ca` a server is believed whatever it shows. `socket`: the one connection that it has,
   * over TLS.
   */
  constructor(
    url: string,
    {
      ca,
      credentials,
      socket,
    }: { ca?: string; credentials?: CertificateFiles; socket?: Socket | undefined } = {},
  ) {
    this.#url = url
    if (credentials !== undefined)
      this.#agent = new Agent({
        keepAlive: true,
        ...(ca === undefined ? { rejectUnauthorized: false } : { ca: readFileSync(ca) }),
        cert: readFileSync(credentials.certificate),
        key: readFileSync(credentials.key),
        ...(socket && { socket }),
      })
  }

  get(path: string): Promise<Answer> {
    return this.send('GET', path)
  }

  post(path: string, object: unknown): Promise<Answer> {
    return this.send('POST', path, JSON.stringify(object))
  }

  send(
    method: string,
    path: string,
    body?: string,
    contentType = 'application/json',
  ): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const options = {
      method,
      headers: {
        accept: 'application/json',
        ...(body !== undefined && { 'content-type': contentType }),
      },
      timeout: 10_000,
    }
    const url = new URL(path, this.#url)
    const sent =
      url.protocol === 'https:'
        ? request(url, { ...options, ...(this.#agent && { agent: this.#agent }) })
        : plainRequest(url, options)
    sent.on('error', reject)
    sent.on('timeout', () => sent.destroy(new Error(`${method} ${path}: silence for 10 s`)))
    sent.on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const body = Buffer.concat(chunks)
        resolve({
          status: response.statusCode ?? 0,
          body,
          warnings: warningsIn(response.rawHeaders),
          json: () => JSON.parse(body.toString()) as KubeObject,
        })
      })
    })
    sent.end(body)
    return promise
  }

  /** Lets go of idle connections. */
  close(): void {
    this.#agent?.destroy()
  }
}

const warningsIn = (raw: readonly string[]): readonly string[] =>
  raw
    .filter((_, i) => i % 2 === 1 && raw[i - 1]?.toLowerCase() === 'warning')
    .map((value) => JSON.parse(value.slice(value.indexOf('"'))) as string)
