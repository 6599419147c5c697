import type { JsonObject } from '../../src/kube/json.ts'
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
  /** Each program is meant for a node of its own, by its number, as a DaemonSet's pods are. */
  readonly aNodeEach?: true
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
    title: 'a pod on each node, one declared port',
    programs: three(() => ({})).slice(0, 2),
    aNodeEach: true,
  },
  {
    name: 'holder-ends',
    title: 'three pods, one declared port; one that has it ends',
    programs: three(() => ({})),
    oneEnds: true,
  },
]

/** The pod as its owner writes it, before anything of an arm. `node`: the one it is meant for, as the DaemonSet controller says it. */
export function podOf(program: Program, node: string | undefined): JsonObject {
  const { name, listens, declares, waits } = program
  const serve = `httpd -f -p ${listens} -h /tmp`
  const script = `cd /tmp && echo ${name} > index.html && ${waits ? `until ${serve}; do sleep 1; done` : `exec ${serve}`}`
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
          ports: declares ? [{ containerPort: listens }] : [],
        },
      ],
      ...(node !== undefined && { affinity: { nodeAffinity: meantFor(node) } }),
    },
  }
}

const meantFor = (node: string): JsonObject => ({
  requiredDuringSchedulingIgnoredDuringExecution: {
    nodeSelectorTerms: [
      { matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] },
    ],
  },
})
