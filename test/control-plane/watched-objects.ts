import type { ApiClient } from '../kit/cluster/api-client.ts'
import type { Kubelet } from '../kit/kubelet.ts'
import { until } from '../kit/until.ts'
import { administratorToken } from './account-token.ts'
import { busyboxPodWith } from './pod.ts'

const namespace = '/api/v1/namespaces/default'

/** Where a kubelet watches that runs the pod of `WatchedObjects`. */
export const kubeletWatches: readonly string[] = [
  '/api/v1/namespaces/default/configmaps',
  '/api/v1/namespaces/default/secrets',
  '/api/v1/nodes',
  '/api/v1/pods',
  '/api/v1/services',
  '/apis/node.k8s.io/v1/runtimeclasses',
  '/apis/storage.k8s.io/v1/csidrivers',
]

const words = `${namespace}/configmaps/words`
const keys = `${namespace}/secrets/keys`

/**
 * An object of each kind that a kubelet watches. The pod serves what it has mounted at port 8080.
 */
export class WatchedObjects {
  readonly pod = 'reader'
  readonly #admin: ApiClient
  readonly #nodeName: string
  #changes = 0

  constructor(admin: ApiClient, nodeName: string) {
    this.#admin = admin
    this.#nodeName = nodeName
  }

  async make(): Promise<void> {
    const metadata = (name: string): object => ({ metadata: { name } })
    const made: readonly [string, object][] = [
      [`${namespace}/serviceaccounts`, metadata('default')],
      [`${namespace}/configmaps`, { ...metadata('words'), data: { change: '0' } }],
      [`${namespace}/secrets`, { ...metadata('keys'), stringData: { change: '0' } }],
      [`${namespace}/services`, { ...metadata('web'), spec: { ports: [{ port: 80 }] } }],
      ['/apis/node.k8s.io/v1/runtimeclasses', { ...metadata('plain'), handler: 'runc' }],
      ['/apis/storage.k8s.io/v1/csidrivers', { ...metadata('csi.test'), spec: {} }],
      [`${namespace}/pods`, this.#podOfAll()],
    ]
    for (const [path, body] of made) await this.#send('POST', path, body)
  }

  /** Each changes once; then a ConfigMap comes and goes, which is named. */
  async change(): Promise<string> {
    this.#changes += 1
    const change = String(this.#changes)
    const metadata = { labels: { change } }
    const changed: readonly [string, object][] = [
      [words, { metadata, data: { change } }],
      [keys, { metadata, stringData: { change } }],
      [`${namespace}/services/web`, { metadata }],
      ['/apis/node.k8s.io/v1/runtimeclasses/plain', { metadata }],
      ['/apis/storage.k8s.io/v1/csidrivers/csi.test', { metadata }],
      // Last: for a pod that has changed the kubelet mounts anew what has.
      [`${namespace}/pods/${this.pod}`, { metadata }],
    ]
    for (const [path, patch] of changed) await this.#send('PATCH', path, patch)
    const passing = `passing-${change}`
    await this.#send('POST', `${namespace}/configmaps`, { metadata: { name: passing } })
    await this.#send('DELETE', `${namespace}/configmaps/${passing}`)
    return passing
  }

  /** Resolves when the pod has the last change of what it has mounted. */
  async mounted(kubelet: Kubelet): Promise<void> {
    const last = String(this.#changes)
    for (const mount of ['words', 'keys'])
      await until(
        `the pod to read change ${last} in ${mount}`,
        async () => {
          const address = (await kubelet.containers()).get(this.pod)?.address()
          const response = await fetch(`http://${address}:8080/${mount}/change`)
          return (await response.text()) === last
        },
        { seconds: 120 },
      )
  }

  /** The token of an account that may read everything. */
  token(): Promise<string> {
    return administratorToken(this.#admin, 'informer')
  }

  async #send(method: string, path: string, object?: object): Promise<string> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : undefined
    const text = object && JSON.stringify(object)
    const { status, body } = await this.#admin.send(method, path, text, type)
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${body.toString()}`)
    return body.toString()
  }

  #podOfAll(): object {
    return busyboxPodWith(
      this.pod,
      {
        nodeName: this.#nodeName,
        runtimeClassName: 'plain',
        automountServiceAccountToken: false,
        volumes: [
          { name: 'words', configMap: { name: 'words' } },
          { name: 'keys', secret: { secretName: 'keys' } },
        ],
      },
      {
        command: ['httpd', '-f', '-p', '8080', '-h', '/mounted'],
        volumeMounts: ['words', 'keys'].map((name) => ({ name, mountPath: `/mounted/${name}` })),
      },
    )
  }
}
