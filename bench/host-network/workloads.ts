import type { JsonObject } from '../../src/api/kube/json.ts'
import { objectAt, withAt } from '../../src/api/kube/json-at.ts'
import { busyboxImage } from '../../test/kit/cluster/oci-image.ts'

/** A program in a pod: it answers with the name of its pod. */
export interface Program {
  readonly name: string
  readonly listens: number
  /** Whether the pod declares that port. */
  readonly declares: boolean
  /** Whether it goes on trying where its port is taken, instead of ending. */
  readonly waits: boolean
}

export interface Workload {
  readonly name: string
  readonly title: string
  readonly programs: readonly Program[]
  /** A DaemonSet has the pods made, one for each node, all with the first program. */
  readonly daemonSet?: true
  /** One that serves is deleted once all has settled, from a node that has more than one. */
  readonly oneEnds?: boolean
}

const port = 8080

const three = (program: (at: number) => Partial<Program>): readonly Program[] =>
  [0, 1, 2].map((at) => ({
    name: `p${at}`,
    listens: port,
    declares: true,
    waits: false,
    ...program(at),
  }))

export const workloads: readonly Workload[] = [
  { name: 'same-port', title: 'three pods, one declared port', programs: three(() => ({})) },
  {
    name: 'distinct-ports',
    title: 'three pods, a declared port each',
    programs: three((at) => ({ listens: port + at })),
  },
  {
    name: 'undeclared-port',
    title: 'three pods, one port that none declares',
    programs: three(() => ({ declares: false })),
  },
  {
    name: 'patient',
    title: 'three pods that wait for one undeclared port',
    programs: three(() => ({ declares: false, waits: true })),
  },
  {
    name: 'daemon-set',
    title: 'a DaemonSet, one declared port',
    programs: three(() => ({})).slice(0, 2),
    daemonSet: true,
  },
  {
    name: 'holder-ends',
    title: 'three pods, one declared port; one that has it ends',
    programs: three(() => ({})),
    oneEnds: true,
  },
]

/** The pod as its owner writes it, before anything of an arm. */
export function podOf({ name, listens, declares, waits }: Program): JsonObject {
  const serve = `httpd -f -p ${listens} -h /tmp`
  const script = `cd /tmp && echo $POD_NAME > index.html && ${waits ? `until ${serve}; do sleep 1; done` : `exec ${serve}`}`
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: 'compared' } },
    spec: {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 1,
      tolerations: [{ operator: 'Exists' }],
      containers: [
        {
          name: 'main',
          image: busyboxImage,
          imagePullPolicy: 'Never',
          command: ['sh', '-c', script],
          env: [{ name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
          ports: declares ? [{ containerPort: listens }] : [],
        },
      ],
    },
  }
}

/** A DaemonSet of such pods. */
export const daemonSetOf = (pod: JsonObject): JsonObject => ({
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name: 'each' },
  spec: {
    selector: { matchLabels: { app: 'compared' } },
    template: {
      metadata: withAt(objectAt(pod, 'metadata'), ['name'], undefined),
      spec: objectAt(pod, 'spec'),
    },
  },
})

/** What the DaemonSet controller says of the node that a pod is for. */
export const meantFor = (pod: JsonObject, node: string): JsonObject =>
  withAt(pod, ['spec', 'affinity', 'nodeAffinity'], {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [
        { matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] },
      ],
    },
  })
