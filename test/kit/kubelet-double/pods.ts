import type { Json, JsonObject } from '../../../src/api/kube/json.ts'
import { at, type Client } from '../client.ts'
import { ask, get, patch, Stuck } from './requests.ts'
import { Informer } from './informer.ts'
import { claimsVersion, type Release } from './release.ts'
import { mount, type Mounted } from './volumes.ts'

/** All that a pod's containers were given before they could start. */
export interface StartedPod {
  readonly tokens: readonly string[]
  readonly secrets: Readonly<Record<string, Json>>
  readonly configMaps: Readonly<Record<string, Json>>
  readonly volumes: readonly Mounted[]
  readonly resourceClaims: readonly string[]
  /** In the answer to the last status. */
  readonly podIp: string
}

interface Wanted {
  readonly client: Client
  readonly release: Release
  readonly nodeName: string
  readonly pod: JsonObject
  readonly podIp: string
  /** Lets go of a watch when the kubelet ends. */
  readonly keep: <T extends Disposable>(watch: T) => T
}

/**
 * Does for a pod what a kubelet does: volumes of all kinds, then its status. Throws `Stuck` where
 * the pod would wait.
 */
export async function startPod(wanted: Wanted): Promise<StartedPod> {
  const { client, release, nodeName, pod } = wanted
  const namespace = at(pod, 'metadata', 'namespace') as string
  const volumes = listAt(pod, 'spec', 'volumes')
  const sources = volumes.flatMap((volume) => listAt(volume, 'projected', 'sources'))
  const named = (of: readonly JsonObject[], ...path: string[]): string[] =>
    of.flatMap((each) => {
      const name = at(each, ...path)
      return typeof name === 'string' ? [name] : []
    })
  const tokens: string[] = []
  for (const { serviceAccountToken } of sources) {
    if (serviceAccountToken)
      tokens.push(await token(client, pod, serviceAccountToken as JsonObject))
  }
  const mounted: Mounted[] = []
  for (const claim of named(volumes, 'persistentVolumeClaim', 'claimName')) {
    mounted.push(await mount(client, nodeName, namespace, claim))
  }
  const resourceClaims: string[] = []
  for (const name of named(listAt(pod, 'spec', 'resourceClaims'), 'resourceClaimName')) {
    const version = claimsVersion(release)
    const path = `/apis/resource.k8s.io/${version}/namespaces/${namespace}/resourceclaims/${name}`
    resourceClaims.push(at(await get(client, path), 'metadata', 'uid') as string)
  }
  return {
    tokens,
    secrets: await contents(wanted, 'secrets', named(volumes, 'secret', 'secretName')),
    configMaps: await contents(wanted, 'configmaps', named(sources, 'configMap', 'name')),
    volumes: mounted,
    resourceClaims,
    podIp: await saysItRuns(wanted),
  }
}

/** A token for a projected volume, for this pod alone. */
async function token(
  client: Client,
  pod: JsonObject,
  { audience, expirationSeconds }: JsonObject,
): Promise<string> {
  const { name, uid, namespace } = pod['metadata'] as Record<string, string>
  const account = at(pod, 'spec', 'serviceAccountName') as string
  const body = {
    kind: 'TokenRequest',
    apiVersion: 'authentication.k8s.io/v1',
    metadata: {},
    spec: {
      audiences: audience ? [audience] : [],
      expirationSeconds: expirationSeconds ?? null,
      boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name, uid } as JsonObject,
    },
  }
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`
  const { object } = await ask(client, 'POST', path, { body, fine: [201] })
  return at(object, 'status', 'token') as string
}

/** Each by a list and watch of its own, as with the kubelet's default strategy. */
async function contents(
  { client, release, pod, keep }: Wanted,
  resource: string,
  names: readonly string[],
): Promise<Record<string, Json>> {
  const namespace = at(pod, 'metadata', 'namespace') as string
  const found: Record<string, Json> = {}
  for (const name of names) {
    const path = `/api/v1/namespaces/${namespace}/${resource}`
    const informer = keep(new Informer(client, path, { fieldSelector: `metadata.name=${name}` }))
    const object = (await informer.sync(release)).get(`${namespace}/${name}`)
    if (!object) throw new Stuck(`${resource} ${name} is not there`, 200)
    found[name] = object['data'] ?? {}
  }
  return found
}

/** The status of a pod that runs, against what the API server has. */
async function saysItRuns({ client, pod, podIp: podIP }: Wanted): Promise<string> {
  const { name, uid, namespace } = pod['metadata'] as Record<string, string>
  const path = `/api/v1/namespaces/${namespace}/pods/${name}`
  const known = await get(client, path)
  if (at(known, 'metadata', 'uid') !== uid) throw new Stuck(`${path} is another`, 200)
  const answered = await patch(client, `${path}/status`, {
    metadata: { uid: uid ?? '' },
    status: {
      phase: 'Running',
      podIP,
      podIPs: [{ ip: podIP }],
      '$setElementOrder/conditions': [{ type: 'Ready' }],
      conditions: [
        { type: 'Ready', status: 'True', lastProbeTime: null, lastTransitionTime: null },
      ],
    },
  })
  return at(answered, 'status', 'podIP') as string
}

const listAt = (object: JsonObject, ...path: string[]): readonly JsonObject[] =>
  (at(object, ...path) ?? []) as readonly JsonObject[]
