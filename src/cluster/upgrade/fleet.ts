import { hubReportIn, installReportIn } from '../../api/kube/hub-report.ts'
import type { HubReport, InstallReport } from '../../api/kube/hub-report.ts'
import { isObject, parseJson, type JsonObject } from '../../api/kube/json.ts'
import { listAt, objectAt, optionalObjectAt, textAt } from '../../api/kube/json-at.ts'
import type { ApiServer } from '../api/api-server.ts'

/** On a Node while its hub is upgraded: its `Baseline`, as JSON. */
const baselineAnnotation = 'nodehub.io/before-upgrade'

/** On the DaemonSet of the installers: the `UpgradeState`, as JSON. */
const stateAnnotation = 'nodehub.io/upgrade'

/** How a node was before its hub was upgraded: the gate compares with it. */
export interface Baseline {
  /** The image that it is upgraded to. */
  readonly to: string
  /** The release before; '' where its hub did not report. */
  readonly version: string
  /** When the hub before had started; '' where it did not report. */
  readonly started: string
  /** The status of its condition OfflineReady; '' where it had none. */
  readonly offlineReady: string
  readonly refused: readonly string[]
}

/** A node with an installer, as the cluster has it. */
export interface FleetNode {
  readonly name: string
  readonly labels: JsonObject
  /** Its kubelet's condition Ready. */
  readonly isReady: boolean
  readonly offlineReady: { readonly status: string; readonly message: string } | undefined
  readonly report: HubReport | undefined
  readonly installed: InstallReport | undefined
  readonly baseline: Baseline | undefined
  readonly pod: InstallerPod | undefined
}

interface InstallerPod {
  readonly name: string
  readonly uid: string
  readonly image: string
}

/** An upgrade that is under way, or the last one. */
export interface UpgradeState {
  /** One run of the command: another one that writes its own takes over. */
  readonly run: string
  readonly image: string
  readonly version: string
  /** The image before the first wave. */
  readonly from: string
  readonly phase: 'upgrading' | 'taking back' | 'taken back' | 'stopped' | 'done'
  /** Why a wave failed. */
  readonly reason?: string
}

/** The DaemonSet of the installers. */
export interface Installers {
  readonly path: string
  readonly resourceVersion: string
  readonly image: string
  readonly state: UpgradeState | undefined
  readonly object: JsonObject
}

/** Where the DaemonSet is: `NAMESPACE/NAME`. */
const pathOf = (daemonSet: string): string => {
  const [namespace = '', name = ''] = daemonSet.split('/')
  return `/apis/apps/v1/namespaces/${encodeURIComponent(namespace)}/daemonsets/${encodeURIComponent(name)}`
}

/** Throws where there is none. */
export async function readInstallers(api: ApiServer, daemonSet: string): Promise<Installers> {
  const path = pathOf(daemonSet)
  const object = await api.get(path)
  if (object === undefined) {
    throw new Error(
      `there is no DaemonSet ${daemonSet}: nodehub manifests --part nodes prints it (--daemon-set names another)`,
    )
  }
  return {
    path,
    resourceVersion: textAt(object, 'metadata', 'resourceVersion'),
    image: imageOf(objectAt(object, 'spec', 'template', 'spec')),
    state: stateIn(object),
    object,
  }
}

function stateIn(object: JsonObject): UpgradeState | undefined {
  const state = parseJson(textAt(object, 'metadata', 'annotations', stateAnnotation))
  return isObject(state) && textAt(state, 'image') !== ''
    ? (state as unknown as UpgradeState)
    : undefined
}

/** The image that an installer runs from, and installs. */
const imageOf = (podSpec: JsonObject): string =>
  textAt(listAt(podSpec, 'initContainers')[0] ?? null, 'image')

/**
 * Writes the state, and with it the image of the template, where both still are as they were read.
 * Rejects with a conflict otherwise.
 */
export function writeState(
  api: ApiServer,
  { path, resourceVersion, object }: Installers,
  state: UpgradeState,
  image: string,
): Promise<JsonObject> {
  const template = objectAt(object, 'spec', 'template')
  const spec = objectAt(template, 'spec')
  const withImage = (name: string): JsonObject[] =>
    listAt(spec, name)
      .filter(isObject)
      .map((container) => ({
        ...container,
        image,
        args: listAt(container, 'args').map((arg) =>
          textAt(arg).startsWith('--image=') ? `--image=${image}` : arg,
        ),
      }))
  return api.patch(path, 'merge', {
    metadata: { resourceVersion, annotations: { [stateAnnotation]: JSON.stringify(state) } },
    spec: {
      template: {
        spec: { initContainers: withImage('initContainers'), containers: withImage('containers') },
      },
    },
  })
}

/** The nodes on which an installer runs, by name. */
export async function readFleet(
  api: ApiServer,
  installers: Installers,
): Promise<ReadonlyMap<string, FleetNode>> {
  const podsPath = podsOf(installers)
  const labels = objectAt(installers.object, 'spec', 'selector', 'matchLabels')
  const labelSelector = Object.entries(labels)
    .map(([key, value]) => `${key}=${String(value as string)}`)
    .join(',')
  const pods = new Map<string, InstallerPod>()
  for await (const pod of api.list(podsPath, { labelSelector })) {
    const node = textAt(pod, 'spec', 'nodeName')
    // One that is being deleted is as good as gone.
    if (textAt(pod, 'metadata', 'deletionTimestamp') !== '') continue
    const [name, uid] = [textAt(pod, 'metadata', 'name'), textAt(pod, 'metadata', 'uid')]
    pods.set(node, { name, uid, image: imageOf(objectAt(pod, 'spec')) })
  }
  const selector = objectAt(installers.object, 'spec', 'template', 'spec', 'nodeSelector')
  const nodeSelector = Object.entries(selector)
    .map(([key, value]) => `${key}=${String(value as string)}`)
    .join(',')
  const fleet = new Map<string, FleetNode>()
  for await (const node of api.list('/api/v1/nodes', { labelSelector: nodeSelector })) {
    const name = textAt(node, 'metadata', 'name')
    fleet.set(name, fleetNode(node, name, pods.get(name)))
  }
  return new Map([...fleet].toSorted(([one], [other]) => (one < other ? -1 : 1)))
}

const podsOf = ({ path }: Installers): string =>
  path.replace(/^\/apis\/apps\/v1\/(.*)\/daemonsets\/.*/, '/api/v1/$1/pods')

function fleetNode(node: JsonObject, name: string, pod: InstallerPod | undefined): FleetNode {
  const condition = (type: string) =>
    listAt(node, 'status', 'conditions').find((each) => textAt(each, 'type') === type)
  const offlineReady = condition('OfflineReady')
  return {
    name,
    labels: optionalObjectAt(objectAt(node, 'metadata'), 'labels') ?? {},
    isReady: textAt(condition('Ready') ?? null, 'status') === 'True',
    offlineReady:
      offlineReady === undefined
        ? undefined
        : { status: textAt(offlineReady, 'status'), message: textAt(offlineReady, 'message') },
    report: hubReportIn(node),
    installed: installReportIn(node),
    baseline: baselineIn(node),
    pod,
  }
}

function baselineIn(node: JsonObject): Baseline | undefined {
  const baseline = parseJson(textAt(node, 'metadata', 'annotations', baselineAnnotation))
  const to = textAt(baseline, 'to')
  if (to === '') return undefined
  return {
    to,
    version: textAt(baseline, 'version'),
    started: textAt(baseline, 'started'),
    offlineReady: textAt(baseline, 'offlineReady'),
    refused: listAt(baseline, 'refused').map((each) => textAt(each)),
  }
}

/** Keeps on the Node how it is now; `undefined` takes that off again. */
export async function keepBaseline(
  api: ApiServer,
  node: string,
  baseline: Baseline | undefined,
): Promise<void> {
  const value = baseline === undefined ? null : JSON.stringify(baseline)
  await api.patch(`/api/v1/nodes/${encodeURIComponent(node)}`, 'merge', {
    metadata: { annotations: { [baselineAnnotation]: value } },
  })
}

/** Deletes this installer: the DaemonSet's controller makes the next one by its template. */
export async function replaceInstaller(
  api: ApiServer,
  installers: Installers,
  { name, uid }: InstallerPod,
): Promise<void> {
  const path = `${podsOf(installers)}/${encodeURIComponent(name)}`
  const body = JSON.stringify({ preconditions: { uid } })
  const { status } = await api.send({ method: 'DELETE', path, body })
  // 404 and 409: it has been deleted, or replaced, by another client.
  if (status >= 300 && status !== 404 && status !== 409)
    throw new Error(`DELETE ${path} was answered ${status}`)
}
