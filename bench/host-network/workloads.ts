import type { JsonObject } from '../../src/api/kube/json.ts'
import { objectAt, withAt } from '../../src/api/kube/json-at.ts'
import { busyboxImage } from '../../test/kit/cluster/oci-image.ts'

/** A program in a pod: it answers with the name of its pod. */
export interface Program {
  readonly name: string
  readonly listens: number
  /** Whether the pod declares that port. */
  readonly declares: boolean
  /** What it does where its port is taken; `shares`: it and the other set SO_REUSEPORT. */
  readonly ifTaken: 'ends' | 'waits' | 'shares'
  /** What its readiness probe asks: the port by number, or itself whether it answers. */
  readonly probe?: 'port' | 'itself'
  /** The address that a container with NET_ADMIN beside it gives the network it is in. */
  readonly gives?: string
  /** It comes after what happens to the others. */
  readonly late?: true
}

/** What happens once all has settled. */
export type Happening =
  /** One that serves is deleted, from a node that has more than one. */
  | 'one ends'
  /** The Deployment gets a new template. */
  | 'update'
  /** The nodes lose their link and their power, and have their power back. */
  | 'reboot'
  /** The hubs' filter is switched off. */
  | 'switch off'

export interface Workload {
  readonly name: string
  readonly title: string
  readonly programs: readonly Program[]
  /**
   * What makes the pods, all with the first program: one for each node, or as many as there are
   * programs, one more during an update.
   */
  readonly owner?: 'DaemonSet' | 'Deployment'
  readonly happens?: Happening
  /** Whether in an update one ends before another comes. */
  readonly inPlace?: true
  /** Whether it is watched for longer, to tell what a node uses meanwhile. */
  readonly measured?: true
  /** A namespace that enforces the Pod Security Standard baseline, in place of `default`. */
  readonly baseline?: true
  /** There is a third node, of no pool and with a CNI plugin. */
  readonly mixed?: true
}

/** Where the pods are, by whether the namespace restricts them. */
export const namespaces = { open: 'default', baseline: 'baseline' } as const

export const namespaceOf = ({ baseline }: Workload): string =>
  baseline ? namespaces.baseline : namespaces.open

const port = 8080

const three = (program: (at: number) => Partial<Program>): readonly Program[] =>
  [0, 1, 2].map((at) => ({
    name: `p${at}`,
    listens: port,
    declares: true,
    ifTaken: 'ends',
    ...program(at),
  }))

const ownPort = (at: number): Partial<Program> => ({ listens: port + at })

export const workloads: readonly Workload[] = [
  { name: 'same-port', title: 'three pods, one declared port', programs: three(() => ({})) },
  {
    name: 'distinct-ports',
    title: 'three pods, a declared port each',
    programs: three(ownPort),
    measured: true,
  },
  {
    name: 'undeclared-port',
    title: 'three pods, one port that none declares',
    programs: three(() => ({ declares: false })),
  },
  {
    name: 'patient',
    title: 'three pods that wait for one undeclared port',
    programs: three(() => ({ declares: false, ifTaken: 'waits' })),
  },
  {
    name: 'probed-port',
    title: 'the same with a readiness probe of that port',
    programs: three(() => ({ declares: false, ifTaken: 'waits', probe: 'port' })),
  },
  {
    name: 'reused-port',
    title: 'three pods, one declared port with SO_REUSEPORT',
    programs: three(() => ({ ifTaken: 'shares' })),
  },
  {
    name: 'daemon-set',
    title: 'a DaemonSet, one declared port',
    programs: three(() => ({})).slice(0, 2),
    owner: 'DaemonSet',
  },
  {
    name: 'rolling-update',
    title: 'a Deployment of two, one declared port, updated with maxSurge 1',
    programs: three(() => ({ probe: 'itself' })).slice(0, 2),
    owner: 'Deployment',
    happens: 'update',
  },
  {
    name: 'update-in-place',
    title: 'the same updated with maxSurge 0',
    programs: three(() => ({ probe: 'itself' })).slice(0, 2),
    owner: 'Deployment',
    happens: 'update',
    inPlace: true,
  },
  {
    name: 'holder-ends',
    title: 'three pods, one declared port; one that has it ends',
    programs: three(() => ({})),
    happens: 'one ends',
  },
  {
    name: 'baseline',
    title: 'three pods, a port each, in a namespace that enforces baseline',
    programs: three(ownPort),
    baseline: true,
  },
  {
    name: 'net-admin',
    title: 'three pods, a port each, and a sidecar with NET_ADMIN',
    programs: three((at) => ({ ...ownPort(at), gives: `127.9.0.${at + 1}` })),
  },
  {
    name: 'mixed-pools',
    title: 'three pods, one declared port; a third node is of no pool',
    programs: three(() => ({})),
    mixed: true,
  },
  {
    name: 'offline-reboot',
    title: 'three pods, a port each; the nodes start again without a link',
    programs: three(ownPort),
    happens: 'reboot',
  },
  {
    name: 'switched-off',
    title: 'two pods, a port each; propagation is switched off; a third pod',
    programs: three((at) => ({ ...ownPort(at), ...(at === 2 && { late: true }) })),
    happens: 'switch off',
  },
]

/** A program that sets SO_REUSEPORT, which busybox does not: reused-port.c. */
export const reusingImage = 'test.local/reused-port:1'

/** The pod as its owner writes it, before anything of an arm. */
export function podOf(program: Program): JsonObject {
  const { name, listens, declares, gives } = program
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: 'compared' } },
    spec: {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 1,
      // Given at registration, and here nothing takes it off.
      tolerations: [{ key: 'node.kubernetes.io/not-ready', operator: 'Exists' }],
      containers: [
        {
          name: 'main',
          imagePullPolicy: 'Never',
          ...commandOf(program),
          env: [{ name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
          ports: declares ? [{ containerPort: listens }] : [],
          ...probeOf(program),
        },
        ...(gives === undefined ? [] : [networkAdministrator(gives)]),
      ],
    },
  }
}

function commandOf({ listens, ifTaken }: Program): JsonObject {
  if (ifTaken === 'shares')
    return { image: reusingImage, command: ['/reused-port', String(listens)] }
  const serve = `httpd -f -p ${listens} -h /tmp`
  const script = ifTaken === 'waits' ? `until ${serve}; do sleep 1; done` : `exec ${serve}`
  return {
    image: busyboxImage,
    command: ['sh', '-c', `cd /tmp && echo $POD_NAME > index.html && ${script}`],
  }
}

function probeOf({ listens, probe }: Program): JsonObject {
  if (probe === undefined) return {}
  const asks =
    probe === 'port'
      ? { httpGet: { path: '/index.html', port: listens } }
      : {
          exec: {
            command: [
              'sh',
              '-c',
              `[ "$(wget -qO- http://127.0.0.1:${listens}/index.html)" = "$POD_NAME" ]`,
            ],
          },
        }
  return { readinessProbe: { ...asks, periodSeconds: 2, timeoutSeconds: 5, failureThreshold: 2 } }
}

/** As an injector of a service mesh adds one: it changes the network of its pod. */
const networkAdministrator = (address: string): JsonObject => ({
  name: 'sidecar',
  image: busyboxImage,
  imagePullPolicy: 'Never',
  command: [
    'sh',
    '-c',
    `trap exit TERM; busybox ip addr add ${address}/32 dev lo; while :; do sleep 3600 & wait; done`,
  ],
  securityContext: { capabilities: { add: ['NET_ADMIN'] } },
})

/** What makes such pods. */
export function ownerOf({ owner, programs, inPlace }: Workload, pod: JsonObject): JsonObject {
  return {
    apiVersion: 'apps/v1',
    kind: owner ?? '',
    metadata: { name: 'each' },
    spec: {
      selector: { matchLabels: { app: 'compared' } },
      template: {
        metadata: withAt(objectAt(pod, 'metadata'), ['name'], undefined),
        spec: objectAt(pod, 'spec'),
      },
      ...(owner === 'Deployment' && {
        replicas: programs.length,
        strategy: {
          rollingUpdate: { maxSurge: inPlace ? 0 : 1, maxUnavailable: inPlace ? 1 : 0 },
        },
      }),
    },
  }
}

/** The label of pods of the template that an update brings. */
export const updated = { key: 'version', value: 'new' } as const

/** What the DaemonSet controller says of the node that a pod is for. */
export const meantFor = (pod: JsonObject, node: string): JsonObject =>
  withAt(pod, ['spec', 'affinity', 'nodeAffinity'], {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [
        { matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] },
      ],
    },
  })
