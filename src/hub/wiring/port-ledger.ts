import type { Logger } from 'pino'
import { portsInUse } from '../../base/listening-sockets.ts'
import { cursorOf } from '../../api/codec/cursor.ts'
import { objectKind } from '../../api/codec/list.ts'
import type { GVK } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import { pods } from '../../api/kube/resources.ts'
import { canonicalFieldSelector } from '../../api/kube/selectors.ts'
import { nodeIdentity } from '../../api/request/identity.ts'
import { objectRepresentation } from '../../api/request/representation.ts'
import type { StartConfig } from '../../config/hub-config.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import { kubeletCache, podsOf, type CachedCollection } from '../boot/kubelet-cache.ts'
import type { Judgement } from '../filter/host-network/judgement.ts'
import { PortLedger, type RecordedPod, type StoredPods } from '../filter/host-network/ledger.ts'
import type { PodFacts } from '../filter/host-network/pod-facts.ts'
import type { VerdictStore } from '../filter/host-network/verdicts.ts'
import type { AcceptedWrite, CollectionKey, ObjectStore, WriteObserver } from '../store/store.ts'
import { portsOfHub } from './host-network.ts'

/** Observes the writes of the node's pods as its kubelet lists them. */
export const podWrites = (
  nodeName: string,
  onAccepted: (key: CollectionKey, write: AcceptedWrite) => void,
): WriteObserver => {
  const selector = canonicalFieldSelector(podsOf(nodeName).fieldSelector ?? '')
  return {
    observes: ({ partition, gvr, namespace, labelSelector, fieldSelector }) =>
      partition.identity === nodeIdentity &&
      encodingOf(partition.representation) !== undefined &&
      gvr.group === pods.group &&
      gvr.resource === pods.resource &&
      namespace === undefined &&
      labelSelector === '' &&
      fieldSelector === selector,
    onAccepted,
  }
}

const encodingOf = (representation: string): Encoding | undefined =>
  (['protobuf', 'json'] as const).find(
    (encoding) => objectRepresentation(encoding).key === representation,
  )

interface LedgerDependencies {
  readonly store: ObjectStore
  readonly verdicts: VerdictStore
  readonly metrics: HubMetrics
  readonly onJudged: (pod: PodFacts, judgement: Judgement) => void
  readonly log: Logger
}

/** The port ledger of this node. */
export const portLedgerOf = (
  config: StartConfig,
  { store, verdicts, metrics, onJudged, log }: LedgerDependencies,
): PortLedger =>
  new PortLedger({
    nodeName: config.nodeName,
    verdicts,
    reserved: portsOfHub(config),
    listeners: portsInUse,
    stored: () => storedPods(store, config.nodeName),
    onJudged: (pod, judgement) => {
      const { verdict, reason, message } = judgement
      metrics.hostNetworkVerdicts.add({ result: verdict, reason })
      const level = verdict === 'refused' ? 'warn' : 'info'
      log[level]({ pod: `${pod.namespace}/${pod.name}`, reason, message }, `a pod is ${verdict}`)
      onJudged(pod, judgement)
    },
    onFailure: (err) => log.error({ err }, 'cannot read a pod of the node for its ports'),
  })

const podKind: GVK = { group: '', version: 'v1', kind: 'Pod' }

/** Passes an accepted write of the node's pods on to the ledger. */
export function noteWrite(ledger: PortLedger, key: CollectionKey, write: AcceptedWrite): void {
  const encoding = encodingOf(key.partition.representation) ?? 'json'
  if (write.kind === 'list') {
    const kind = objectKind(write.gvk)
    ledger.listed(
      write.objects.map((object) => recorded(encoding, kind, object)),
      write.version,
    )
    return
  }
  ledger.changed(
    write.events.flatMap((event) =>
      'object' in event
        ? [{ pod: recorded(encoding, podKind, event.object), isGone: event.type === 'DELETED' }]
        : [],
    ),
  )
}

const recorded = (encoding: Encoding, kind: GVK, object: ApiObject): RecordedPod => ({
  cursor: cursorOf(encoding, kind, object),
  uid: object.uid,
  resourceVersion: object.resourceVersion,
})

function storedPods(store: ObjectStore, nodeName: string): StoredPods | undefined {
  const known = kubeletCache(store, nodeName, () => false).collection(podsOf(nodeName))
  return known && { pods: readFrom(known), version: known.resourceVersion }
}

function* readFrom(collection: CachedCollection): Generator<RecordedPod> {
  using known = collection
  for (const object of known.objects) yield recorded(known.encoding, known.gvk, object)
}
