import { createInterface } from 'node:readline'
import { request } from 'undici'
import { untilAborted } from '../base/abort.ts'
import { sleep } from '../base/clock.ts'
import { parseJson, type Json } from '../api/kube/json.ts'
import { listAt, objectAt } from '../api/kube/json-at.ts'
import { hostNetworkLabel, nodePoolLabel, topologyKeysAnnotation } from '../api/kube/node-pool.ts'
import { nodes, pods, services } from '../api/kube/resources.ts'
import type { HostNetworkReport } from '../hub/wiring/status/host-network-report.ts'
import type { Replica, Sandbox } from '../sandbox/sandbox.ts'
import type { Terminal } from './command.ts'
import { nodeName } from './demo-cluster.ts'
import type { DemoNode } from './demo-node.ts'

/** The help on the keys. */
export const keys = `  Type, and press return:
    u  unplug the cloud             p  plug it in again
    z  freeze one API server, and thaw it
    b  reboot the node without the cloud
    f  let a filter act, and stop it
    n  put the node into a host-network pool, with two pods for one port
    c  change a pod in the cloud    q  quit
`

export interface Demonstration {
  readonly sandbox: Sandbox
  /** The second API server. */
  readonly second: Replica
  readonly node: DemoNode
  /** The words of `nodehub inspect`, with its flags, for a report. */
  readonly inspect: (report: string) => string
}

/** Runs typed commands until `q`, the end of the input, or a signal. */
export async function obey(terminal: Terminal, demonstration: Demonstration): Promise<void> {
  const stopped = new AbortController()
  const stop = (): void => stopped.abort()
  process.once('SIGTERM', stop).once('SIGINT', stop)
  await using commands = new Commands(terminal, demonstration)
  const lines = createInterface({ input: process.stdin, signal: stopped.signal })
  for await (const line of lines) {
    const word = line.trim()
    if (word === 'q') stop()
    else if (word !== '' && !(await commands.run(word))) terminal.out(keys)
  }
  // Without a keyboard it runs until a signal.
  if (process.stdin.isTTY !== true) await untilAborted(stopped.signal)
}

/** The commands, and the faults that they have made so far. */
class Commands implements AsyncDisposable {
  readonly #out: (text: string) => void
  readonly #with: Demonstration
  #unplugged: AsyncDisposableStack | undefined
  #frozen: Disposable | undefined
  #changes = 0
  readonly #byKey: Readonly<Record<string, () => Promise<void> | void>> = {
    u: () => this.#unplug(),
    p: () => this.#plug(),
    z: () => this.#freeze(),
    b: () => this.#reboot(),
    f: () => this.#filter(),
    n: () => this.#hostNetwork(),
    c: () => this.#change(),
  }

  constructor(terminal: Terminal, demonstration: Demonstration) {
    this.#out = (text) => terminal.out(text)
    this.#with = demonstration
  }

  /** Whether there is such a command. */
  async run(key: string): Promise<boolean> {
    const command = Object.hasOwn(this.#byKey, key) ? this.#byKey[key] : undefined
    await command?.()
    return command !== undefined
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#frozen?.[Symbol.dispose]()
    await this.#unplugged?.disposeAsync()
  }

  async #unplug(): Promise<void> {
    if (this.#unplugged === undefined) {
      const { sandbox, second } = this.#with
      this.#unplugged = new AsyncDisposableStack()
      this.#unplugged.use(await sandbox.faults.refuse())
      this.#unplugged.use(await second.faults.refuse())
    }
    this.#out('  Unplugged.\n')
  }

  async #plug(): Promise<void> {
    await this.#unplugged?.disposeAsync()
    this.#unplugged = undefined
    this.#out('  Plugged in.\n')
  }

  #freeze(): void {
    const { second } = this.#with
    if (this.#frozen) {
      this.#frozen[Symbol.dispose]()
      this.#frozen = undefined
      this.#out(`  ${second.url} answers again.\n`)
      return
    }
    this.#frozen = second.faults.freeze()
    this.#out(`
  ${second.url} takes connections and answers nothing; the other one is well.
  Look: no kubectl waits for long, as what the frozen one does not answer is sent to the other. In some seconds
  it is unhealthy: see the status page, or ${this.#with.inspect('upstreams')}

`)
  }

  async #reboot(): Promise<void> {
    await this.#unplug()
    const { node } = this.#with
    await node.reboot()
    const listed = await this.#seen(
      async () => node.pods,
      (known) => known !== undefined,
    )
    this.#out(`
  The node has rebooted without the cloud: hub, kubelet and kube-proxy began anew, and the kubelet got its ${listed ?? 0} pods
  from the hub's disk. Look: kubectl get pods -A, and the status page. Press p for the cloud.

`)
  }

  async #filter(): Promise<void> {
    if (!this.#isPlugged()) return
    const { sandbox } = this.#with
    const service = sandbox.get(services, 'collector', 'plant')
    if (!service) return
    const { [topologyKeysAnnotation]: key, ...others } = objectAt(
      service,
      'metadata',
      'annotations',
    )
    const annotations =
      key === undefined ? { ...others, [topologyKeysAnnotation]: 'kubernetes.io/hostname' } : others
    sandbox.update(services, { ...service, metadata: { ...service.metadata, annotations } })
    const expected = key === undefined ? 3 : 4
    const seen = await this.#seen(
      () => this.#endpoints(),
      (addresses) => addresses.length === expected,
    )
    this.#out(`
  Service plant/collector ${key === undefined ? 'has the annotation' : 'has no annotation'} ${topologyKeysAnnotation}${key === undefined ? ': kubernetes.io/hostname' : ' any more'}.
  kube-proxy of this node is shown ${seen.length} of its 4 endpoints: ${seen.join(' ')}
  Look: kubectl get endpointslices -n plant collector-1 has all of them. Which filters act:
  ${this.#with.inspect('filters')}

`)
  }

  /** The endpoints of a service as kube-proxy gets them. */
  async #endpoints(): Promise<readonly string[]> {
    const slices = await this.#get(
      'kube-proxy',
      '/apis/discovery.k8s.io/v1/namespaces/plant/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dcollector',
    )
    return listAt(slices, 'items').flatMap((slice) =>
      listAt(slice, 'endpoints').flatMap((endpoint) => listAt(endpoint, 'addresses').map(String)),
    )
  }

  async #hostNetwork(): Promise<void> {
    if (!this.#isPlugged()) return
    const { sandbox } = this.#with
    const node = sandbox.get(nodes, nodeName)
    if (!node) return
    const labels = {
      ...objectAt(node, 'metadata', 'labels'),
      [nodePoolLabel]: 'site',
      [hostNetworkLabel]: 'true',
    }
    sandbox.update(nodes, { ...node, metadata: { ...node.metadata, labels } })
    await this.#seen(
      () => this.#podNetworks(),
      ({ hostNetworkPool }) => hostNetworkPool === true,
    )
    for (const name of presses) {
      if (sandbox.get(pods, name, 'plant')) continue
      const ports = [{ containerPort: pressPort, protocol: 'TCP' }]
      const containers = [{ name: 'main', image: 'registry.example/press:1.0', ports }]
      sandbox.create(pods, {
        metadata: { name, namespace: 'plant', labels: { app: 'press' } },
        spec: { nodeName, containers },
      })
    }
    const { pods: shown = [] } = await this.#seen(
      () => this.#podNetworks(),
      ({ pods: listed = [] }) => presses.every((name) => listed.some((pod) => pod.name === name)),
    )
    const onHost = shown.filter(({ network }) => network === 'propagated')
    this.#out(`
  The node is in a host-network pool now, and the kubelet is shown new pods on the host's network: ${onHost.map(({ name }) => name).join(' and ')},
  which both want port ${pressPort}. It has room for one of them. Pods that ran before stay as they were.
  Which ports clash: ${this.#with.inspect('host-network')}

`)
  }

  async #podNetworks(): Promise<HostNetworkReport> {
    return (await this.#with.node.report('host-network')) as HostNetworkReport
  }

  #change(): void {
    const { sandbox } = this.#with
    const pod = sandbox.get(pods, 'collector-0', 'plant')
    if (!pod) return
    this.#changes += 1
    const annotations = { 'demo.example/change': String(this.#changes) }
    sandbox.update(pods, { ...pod, metadata: { ...pod.metadata, annotations } })
    this.#out(`  plant/collector-0 has change ${this.#changes} now.\n`)
  }

  #isPlugged(): boolean {
    if (this.#unplugged) this.#out('  That takes the cloud: press p first.\n')
    return this.#unplugged === undefined
  }

  /** The hub's answer to a component, in JSON. */
  async #get(component: string, path: string): Promise<Json | undefined> {
    const { body } = await request(`${this.#with.node.server}${path}`, {
      headers: { 'user-agent': `${component}/v1.35.0 (linux/amd64)`, accept: 'application/json' },
    })
    return parseJson(await body.text())
  }

  /** Reads again until it is as expected, or some seconds are over. */
  async #seen<T>(read: () => Promise<T>, isExpected: (value: T) => boolean): Promise<T> {
    for (let tries = 0; ; tries += 1) {
      const value = await read()
      if (isExpected(value) || tries >= mostTries) return value
      await sleep(betweenTriesMs)
    }
  }
}

const presses = ['press-a', 'press-b']
const pressPort = 18_080
const mostTries = 50
const betweenTriesMs = 100
