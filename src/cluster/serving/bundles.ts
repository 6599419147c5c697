import { sleep } from '../../base/clock.ts'
import type { Json, JsonObject } from '../../api/kube/json.ts'
import { listAt, objectAt, textAt, valueAt, withAt } from '../../api/kube/json-at.ts'
import type { ApiServer } from '../api/api-server.ts'
import { isConflict, isNotFound } from '../api/failure.ts'
import { poolDefinitionPath } from '../pools.ts'

/** The Service of the webhooks. Webhooks of other Services belong to others. */
export interface OwnService {
  readonly namespace: string
  readonly name: string
}

export interface CaBundlesOptions {
  readonly api: ApiServer
  /** Its name is that of the webhook configurations, too. */
  readonly service: OwnService
  /** PEM; `undefined`: not known yet, and nothing is written. */
  readonly bundle: () => string | undefined
  readonly onRepaired: (what: string) => void
  readonly onFailure: (cause: unknown) => void
}

const configurations = '/apis/admissionregistration.k8s.io/v1'

/** How often the configurations are read. */
const intervalMs = 5_000

/**
 * Keeps the caBundle of the webhook configurations and of the conversion of pools up to date until
 * `signal` aborts, whichever client writes it: without it API servers refuse to call. Webhooks of
 * other Services are left alone.
 */
export async function keepCaBundles(
  { api, service, bundle, onRepaired, onFailure }: CaBundlesOptions,
  signal: AbortSignal,
): Promise<void> {
  const places = {
    MutatingWebhookConfiguration: `${configurations}/mutatingwebhookconfigurations/${service.name}`,
    ValidatingWebhookConfiguration: `${configurations}/validatingwebhookconfigurations/${service.name}`,
    CustomResourceDefinition: poolDefinitionPath,
  }
  for (; !signal.aborted; await sleep(intervalMs, signal)) {
    const pem = bundle()
    if (pem === undefined) continue
    const caBundle = Buffer.from(pem).toString('base64')
    for (const [what, path] of Object.entries(places)) {
      try {
        const object = await api.get(path, { signal })
        const mended = object && mendedBy(object, service, caBundle)
        if (mended === undefined) continue
        const resourceVersion = textAt(object, 'metadata', 'resourceVersion')
        await api.patch(path, { metadata: { resourceVersion }, ...mended }, signal)
        onRepaired(what)
      } catch (cause) {
        // Another version: it is read again.
        if (!isConflict(cause) && !isNotFound(cause) && !signal.aborted) onFailure(cause)
      }
    }
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
