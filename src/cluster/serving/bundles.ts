import { sleep } from '../../base/clock.ts'
import type { Json, JsonObject } from '../../api/kube/json.ts'
import { listAt, objectAt, textAt, valueAt, withAt } from '../../api/kube/json-at.ts'
import type { ApiServer } from '../api/api-server.ts'
import { isConflict, isNotFound } from '../api/failure.ts'

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

/** How often the configurations are read. */
const intervalMs = 5_000

/**
 * Keeps the caBundle of the webhook configurations and of the conversion of pools up to date,
 * whichever client writes it: without it API servers refuse to call. Webhooks of other Services are
 * left alone.
 */
export class CaBundles implements AsyncDisposable {
  readonly #options: CaBundlesOptions
  readonly #stopped = new AbortController()
  readonly #running: Promise<void>

  constructor(options: CaBundlesOptions) {
    this.#options = options
    this.#running = this.#follow(this.#stopped.signal)
  }

  /** Repairs every caBundle that differs. */
  async #follow(signal: AbortSignal): Promise<void> {
    const { configurations, onFailure } = this.#options
    for (; !signal.aborted; await sleep(intervalMs, signal)) {
      const bundle = this.#options.bundle()
      if (bundle === undefined) continue
      for (const place of places(configurations)) {
        try {
          await this.#repair(place, bundle)
        } catch (cause) {
          // Another version: it is read again.
          if (!isConflict(cause) && !isNotFound(cause)) onFailure?.(cause)
        }
      }
    }
  }

  async #repair({ what, path, name }: Target, bundle: string): Promise<void> {
    const { api, service } = this.#options
    const configuration = await api.get(`${path}/${name}`)
    const caBundle = Buffer.from(bundle).toString('base64')
    const mended = configuration && mendedBy(configuration, service, caBundle)
    if (mended === undefined) return
    const resourceVersion = textAt(configuration, 'metadata', 'resourceVersion')
    await api.patch(`${path}/${name}`, { metadata: { resourceVersion }, ...mended })
    this.#options.onRepaired?.(what)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort()
    await this.#running
  }
}

/**
 * The changes of a configuration's webhooks, or of a definition's conversion; `undefined` where
 * there are none.
 */
function mendedBy(
  object: JsonObject,
  service: OwnService,
  caBundle: string,
): JsonObject | undefined {
  const isWrong = (webhook: Json | undefined): boolean =>
    textAt(webhook, 'clientConfig', 'service', 'namespace') === service.namespace &&
    textAt(webhook, 'clientConfig', 'service', 'name') === service.name &&
    textAt(webhook, 'clientConfig', 'caBundle') !== caBundle
  const webhooks = listAt(object, 'webhooks')
  if (webhooks.some(isWrong))
    return {
      webhooks: webhooks.map((each) =>
        isWrong(each) ? withAt(objectAt(each), ['clientConfig', 'caBundle'], caBundle) : each,
      ),
    }
  return isWrong(valueAt(object, 'spec', 'conversion', 'webhook'))
    ? { spec: { conversion: { webhook: { clientConfig: { caBundle } } } } }
    : undefined
}
