import t from 'tap'
import type { JsonObject } from '../../../../src/api/kube/json.ts'
import type { Encoding } from '../../../../src/api/kube/media-type.ts'
import {
  judge,
  type Judgement,
  type PortUsers,
} from '../../../../src/hub/filter/host-network/judgement.ts'
import { podFacts, type PodFacts } from '../../../../src/hub/filter/host-network/pod-facts.ts'
import { portsOfHub } from '../../../../src/hub/wiring/host-network.ts'
import type { StartConfig } from '../../../../src/config/hub-config.ts'
import { podCursor, podObject, type PodParts } from '../../../kit/pods.ts'

const factsOf = (name: string, parts: PodParts, encoding: Encoding = 'json'): PodFacts =>
  podFacts(
    podCursor(encoding, podObject(encoding, name, parts)),
    { uid: name, resourceVersion: '7' },
    'node-1',
  )

const free: PortUsers = {
  holderOf: () => undefined,
  listeners: () => new Set(),
  reserved: portsOfHub({
    ops: { port: 10_267 },
    proxy: { port: 10_261, securePort: 10_268 },
  } as StartConfig),
}

const main = { name: 'main', image: 'main' }
const mainWith = (container: JsonObject): PodParts => ({
  spec: { containers: [{ ...main, ...container }] },
})
const port = (containerPort: number, protocol = 'TCP'): PodParts =>
  mainWith({ ports: [{ containerPort, protocol }] })

/** What a pod is, the reason for which it is refused, and what the message names. */
const refused: Readonly<Record<string, readonly [PodParts, string, RegExp]>> = {
  'a privileged container': [
    mainWith({ securityContext: { privileged: true } }),
    'PrivilegedContainer',
    /container main is privileged/,
  ],
  'a privileged init container': [
    {
      spec: { initContainers: [{ ...main, name: 'init', securityContext: { privileged: true } }] },
    },
    'PrivilegedContainer',
    /container init/,
  ],
  'the capability NET_ADMIN': [
    mainWith({ securityContext: { capabilities: { add: ['NET_ADMIN'] } } }),
    'NetworkAdministrator',
    /capability NET_ADMIN/,
  ],
  'the capability by its long name': [
    mainWith({ securityContext: { capabilities: { add: ['CAP_NET_ADMIN'] } } }),
    'NetworkAdministrator',
    /CAP_NET_ADMIN/,
  ],
  'all capabilities': [
    mainWith({ securityContext: { capabilities: { add: ['ALL'] } } }),
    'NetworkAdministrator',
    /capability ALL/,
  ],
  'a hostPort other than its containerPort': [
    mainWith({ ports: [{ containerPort: 80, hostPort: 8080, protocol: 'TCP' }] }),
    'HostPortDiffers',
    /maps port 8080 of the host to its port 80/,
  ],
  'a sysctl of the network': [
    { spec: { securityContext: { sysctls: [{ name: 'net.core.somaxconn', value: '1024' }] } } },
    'NetworkSysctl',
    /net\.core\.somaxconn/,
  ],
  'a sysctl of the network, written with slashes': [
    { spec: { securityContext: { sysctls: [{ name: 'net/core/somaxconn', value: '1024' }] } } },
    'NetworkSysctl',
    /net\/core\/somaxconn/,
  ],
  'a user namespace': [{ spec: { hostUsers: false } }, 'UserNamespace', /hostUsers: false/],
  'a runtime class of virtual machines': [
    { spec: { runtimeClassName: 'kata-qemu' } },
    'VirtualMachine',
    /kata-qemu/,
  ],
  'a runtime class with memory for a kernel': [
    { spec: { runtimeClassName: 'other', overhead: { memory: '120Mi' } } },
    'VirtualMachine',
    /runtime class other/,
  ],
  'the port of the kubelet': [port(10_250), 'PortReserved', /10250\/TCP belongs to the kubelet/],
  'the port of kube-proxy': [port(10_256), 'PortReserved', /10256\/TCP .*kube-proxy/],
  'the port of an API server': [port(6443), 'PortReserved', /6443\/TCP belongs to an API server/],
  'the plain port of the hub': [port(10_261), 'PortReserved', /10261\/TCP belongs to the hub/],
  'the TLS port of the hub': [port(10_268), 'PortReserved', /10268\/TCP belongs to the hub/],
  'the ops port of the hub': [port(10_267), 'PortReserved', /10267\/TCP belongs to the health/],
  'a probe of loopback at the port of the kubelet': [
    mainWith({ livenessProbe: { httpGet: { host: '127.0.0.1', port: 10_250 } } }),
    'PortReserved',
    /10250\/TCP/,
  ],
  'an ephemeral container that is privileged': [
    {
      spec: {
        ephemeralContainers: [{ ...main, name: 'debug', securityContext: { privileged: true } }],
      },
    },
    'PrivilegedContainer',
    /container debug/,
  ],
  'a probe at the port of the kubelet': [
    mainWith({ livenessProbe: { tcpSocket: { port: 10_250 } } }),
    'PortReserved',
    /10250\/TCP/,
  ],
}

for (const encoding of ['json', 'protobuf'] as const) {
  for (const [what, [parts, reason, message]] of Object.entries(refused)) {
    void t.test(`a pod with ${what} is refused with a reason: ${encoding}`, async (t) => {
      const judgement = judge(factsOf('shop', parts, encoding), free)
      t.match(judgement, { verdict: 'refused', reason, message })
    })
  }
}

const judgedWith = (users: Partial<PortUsers>, parts = port(8080)): Judgement =>
  judge(factsOf('shop', parts), { ...free, ...users })

void t.test(
  'a port held by one pod refuses another, and the message names the holder',
  async (t) => {
    const holder = factsOf('first', port(8080))
    const holderOf = (name: string) => (name === '8080/TCP' ? holder : undefined)
    t.match(judgedWith({ holderOf }), {
      verdict: 'refused',
      reason: 'PortHeld',
      message: /port 8080\/TCP is held by pod default\/first\. .*when the port is free/,
    })
    t.match(judgedWith({ holderOf }, port(8080, 'UDP')), { verdict: 'propagated' })
  },
)

void t.test('a listener of the host refuses a pod only where no pod holds the port', async (t) => {
  const listeners = () => new Set(['8080/TCP'])
  t.match(judgedWith({ listeners }), { verdict: 'refused', reason: 'PortInUse' })
  const holderOf = () => factsOf('first', port(8080))
  t.match(judgedWith({ listeners, holderOf }), { verdict: 'refused', reason: 'PortHeld' })
  t.match(judgedWith({ listeners }, port(8081)), { verdict: 'propagated', reason: 'Propagated' })
})

void t.test('where the host’s listeners are unknown, a verdict on ports says so', async (t) => {
  const listeners = () => undefined
  t.match(judgedWith({ listeners }), {
    verdict: 'propagated',
    reason: 'PropagatedWithWarning',
    message: /the hub cannot see which ports the host listens on/,
  })
  t.match(judgedWith({ listeners }, {}), { reason: 'Propagated', message: /declares no port/ })
})

/** Ports that nodes usually use, and what the warning names. */
const usual: readonly (readonly [number, string, RegExp])[] = [
  [22, 'TCP', /port 22\/TCP is usual for ssh/],
  [53, 'TCP', /port 53\/TCP is usual for DNS/],
  [53, 'UDP', /port 53\/UDP is usual for DNS/],
  [80, 'TCP', /port 80\/TCP is usual for HTTP /],
  [443, 'TCP', /port 443\/TCP is usual for HTTPS/],
  [30_000, 'TCP', /port 30000\/TCP is usual for services of type NodePort/],
  [32_767, 'TCP', /port 32767\/TCP is usual for services of type NodePort/],
]

for (const [number, protocol, message] of usual) {
  void t.test(`port ${number}/${protocol} gives a warning`, async (t) => {
    t.match(judgedWith({}, port(number, protocol)), {
      verdict: 'propagated',
      reason: 'PropagatedWithWarning',
      message,
    })
  })
}

void t.test('a port outside those gives no warning', async (t) => {
  for (const number of [21, 8080, 29_999, 32_768])
    t.match(judgedWith({}, port(number)), { verdict: 'propagated', reason: 'Propagated' })
})

void t.test('a pod of a StatefulSet gives a warning', async (t) => {
  const owner = {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    name: 'shop',
    uid: 'u',
    controller: true,
  }
  const parts = { metadata: { ownerReferences: [owner] } }
  t.match(judgedWith({}, parts), {
    verdict: 'propagated',
    reason: 'PropagatedWithWarning',
    message: /StatefulSet/,
  })
})
