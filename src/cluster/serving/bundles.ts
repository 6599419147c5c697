import { every } from '../../base/clock.ts'
import type { Json, JsonObject } from '../../api/kube/json.ts'
import { valueAt, listAt, textAt } from '../../api/kube/json-at.ts'
import { ofVersion } from '../admission/json-patch.ts'
import type { ApiServer } from '../api/api-server.ts'
import { isConflict, isNotFound } from '../api/failure.ts'
import { ApiInformer } from '../api/informer.ts'

/** The Service of the webhooks. Webhooks of other Services belong to others. */
export interface OwnService {
  readonly namespace: string
  readonly name: string
}

export interface CaBundlesOptions {
  readonly api: ApiServer
  readonly service: OwnService
  /** Name of the webhook configurations. */
  readonly configurations: string
  /** PEM; `undefined`: not known yet, and nothing is written. */
  readonly bundle: () => string | undefined
  /** Whether this process may write. */
  readonly holds: () => boolean
  readonly onRepaired?: (what: string) => void
  readonly onFailure?: (cause: unknown) => void
}

interface Target {
  readonly what: string
  readonly path: string
  readonly name: string
}

const definition = 'nodepools.apps.openyurt.io'

const places = (configurations: string): readonly Target[] => [
  {
    what: 'MutatingWebhookConfiguration',
    path: '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations',
    name: configurations,
  },
  {
    what: 'ValidatingWebhookConfiguration',
    path: '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
    name: configurations,
  },
  {
    what: 'CustomResourceDefinition',
    path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
    name: definition,
  },
]

/** Repairs are made at once; this finds the rest after a failure. */
const resyncMs = 30_000

/** The stored facts of such an object. */
interface Configuration {
  readonly resourceVersion: string
  readonly clients: readonly Client[]
}

interface Client {
  /** JSON pointer to its `clientConfig`. */
  readonly at: string
  readonly service: OwnService
  /** In base64. */
  readonly caBundle: string
}

/**
 * Keeps the caBundle of the webhook configurations and of the conversion of pools up to date,
 * whichever client writes it: without it API servers refuse to call. Webhooks of other Services are
 * left alone.
 */
export class CaBundles implements AsyncDisposable {
  readonly #options: CaBundlesOptions
  readonly #followed: readonly {
    readonly place: Target
    readonly items: ApiInformer<Configuration>
  }[]
  readonly #timer: Disposable
  #running: Promise<void> | undefined
  #again = false

  constructor(options: CaBundlesOptions) {
    this.#options = options
    this.#followed = places(options.configurations).map((place) => ({
      place,
      items: new ApiInformer<Configuration>(options.api, {
        path: place.path,
        query: { fieldSelector: `metadata.name=${place.name}` },
        transform: configurationOf,
        onChange: () => void this.reconcile(),
        ...(options.onFailure && { onFailure: options.onFailure }),
      }),
    }))
    this.#timer = every(resyncMs, () => void this.reconcile())
  }

  /**
   * Whether all configurations are known, and each client that leads to us has exactly `bundle`.
   */
  published(bundle: string): boolean {
    return this.#followed.every(
      ({ items }) =>
        items.synced &&
        [...items.items.values()].every((each) => this.#wrong(each, bundle).length === 0),
    )
  }

  /**
   * Repairs every caBundle that differs; one run at a time, and one more if something changed
   * during it.
   */
  reconcile(): Promise<void> {
    this.#again = true
    this.#running ??= this.#reconcile().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #reconcile(): Promise<void> {
    while (this.#again) {
      this.#again = false
      for (const { place, items } of this.#followed) {
        const bundle = this.#options.bundle()
        if (bundle === undefined || !this.#options.holds()) return
        for (const configuration of items.items.values())
          await this.#repair(place, configuration, bundle)
      }
    }
  }

  #wrong({ clients }: Configuration, bundle: string): readonly Client[] {
    const { namespace, name } = this.#options.service
    const wanted = Buffer.from(bundle).toString('base64')
    return clients.filter(
      ({ service, caBundle }) =>
        service.namespace === namespace && service.name === name && caBundle !== wanted,
    )
  }

  async #repair(place: Target, configuration: Configuration, bundle: string): Promise<void> {
    const wrong = this.#wrong(configuration, bundle)
    if (wrong.length === 0) return
    const value = Buffer.from(bundle).toString('base64')
    const patch = [
      ofVersion(configuration.resourceVersion),
      ...wrong.map(({ at }) => ({ op: 'add', path: `${at}/caBundle`, value })),
    ]
    try {
      await this.#options.api.patch(`${place.path}/${place.name}`, 'json', patch)
      this.#options.onRepaired?.(place.what)
    } catch (cause) {
      // Another version: the watch brings it, and it is checked again.
      if (!isConflict(cause) && !isNotFound(cause)) this.#options.onFailure?.(cause)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#timer[Symbol.dispose]()
    await Promise.all(this.#followed.map(({ items }) => items[Symbol.asyncDispose]()))
    await this.#running
  }
}

/** Reads both kinds: a configuration's webhooks, and a definition's conversion. */
function configurationOf(object: JsonObject): Configuration {
  const webhooks = listAt(object, 'webhooks').map((webhook, i) =>
    clientAt(webhook, `/webhooks/${i}/clientConfig`),
  )
  const conversion =
    textAt(object, 'spec', 'conversion', 'strategy') === 'Webhook'
      ? [
          clientAt(
            valueAt(object, 'spec', 'conversion', 'webhook'),
            '/spec/conversion/webhook/clientConfig',
          ),
        ]
      : []
  return {
    resourceVersion: textAt(object, 'metadata', 'resourceVersion'),
    clients: [...webhooks, ...conversion],
  }
}

const clientAt = (webhook: Json | undefined, pointer: string): Client => ({
  at: pointer,
  service: {
    namespace: textAt(webhook, 'clientConfig', 'service', 'namespace'),
    name: textAt(webhook, 'clientConfig', 'service', 'name'),
  },
  caBundle: textAt(webhook, 'clientConfig', 'caBundle'),
})
