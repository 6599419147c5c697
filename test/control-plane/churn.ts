import type { ApiClient } from '../kit/cluster/api-client.ts'
import { busyboxPod } from './pod.ts'

/** Where each of the resources is read, all namespaces together. */
export const paths: Readonly<Record<string, string>> = {
  pods: '/api/v1/pods',
  configmaps: '/api/v1/configmaps',
  secrets: '/api/v1/secrets',
  services: '/api/v1/services',
  endpointslices: '/apis/discovery.k8s.io/v1/endpointslices',
}

const namespaced = (path: string): string => path.replace(/\/([a-z]+)$/, '/namespaces/default/$1')

const bodies: Readonly<Record<string, (name: string) => object>> = {
  pods: (name) => busyboxPod(name, { nodeName: 'edge-1' }),
  configmaps: (name) => ({ metadata: { name }, data: { name } }),
  secrets: (name) => ({ metadata: { name }, stringData: { name } }),
  services: (name) => ({ metadata: { name }, spec: { ports: [{ port: 80 }] } }),
  endpointslices: (name) => ({
    metadata: { name },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.1.1.1'] }],
    ports: [{ name: 'http', port: 80 }],
  }),
}

const names = 6

/**
 * Objects of several kinds that are made, changed and deleted at the API server itself, a few in
 * each round.
 */
export class Churn {
  readonly #admin: ApiClient
  #rounds = 0

  constructor(admin: ApiClient) {
    this.#admin = admin
  }

  async begin(): Promise<void> {
    await this.#admin.post('/api/v1/namespaces/default/serviceaccounts', {
      metadata: { name: 'default' },
    })
    for (let at = 0; at < names; at += 1) await this.#each((resource) => this.#make(resource, at))
  }

  /** Of each kind one object goes, one that had gone comes back, and one changes. */
  async round(): Promise<void> {
    const round = this.#rounds
    this.#rounds += 1
    await this.#each(async (resource) => {
      await this.#delete(resource, round % names)
      if (round > 0) await this.#make(resource, (round - 1) % names)
      await this.#change(resource, (round + 2) % names, round)
    })
  }

  async #each(act: (resource: string) => Promise<void>): Promise<void> {
    await Promise.all(Object.keys(paths).map(act))
  }

  #make(resource: string, at: number): Promise<void> {
    const body = bodies[resource]?.(`churn-${at}`)
    return this.#send('POST', placeOf(resource), JSON.stringify(body))
  }

  #delete(resource: string, at: number): Promise<void> {
    return this.#send('DELETE', `${placeOf(resource)}/churn-${at}?gracePeriodSeconds=0`)
  }

  #change(resource: string, at: number, round: number): Promise<void> {
    const patch = JSON.stringify({ metadata: { labels: { round: String(round) } } })
    const path = `${placeOf(resource)}/churn-${at}`
    return this.#send('PATCH', path, patch, 'application/merge-patch+json')
  }

  async #send(method: string, path: string, body?: string, type?: string): Promise<void> {
    const { status, body: said } = await this.#admin.send(method, path, body, type)
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${said.toString()}`)
  }
}

const placeOf = (resource: string): string => namespaced(paths[resource] ?? '')
