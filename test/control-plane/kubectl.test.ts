import { mkdirSync } from 'node:fs'
import t, { type Test } from 'tap'
import { until } from '../kit/until.ts'
import {
  administrator,
  type ControlPlane,
  noControlPlane,
  startControlPlane,
} from '../kit/control-plane.ts'
import { noKubelet } from '../kit/kubelet.ts'
import { comparedKubectls, type Kubectl } from './kubectl/find.ts'
import { Session } from './kubectl/session.ts'
import { staleness, withoutStaleness } from './kubectl/mask.ts'
import { type Heard, read, talk, talker, talkerName, watch, writeAndErr } from './kubectl/story.ts'
import { nodeReady, podRunning } from './seen.ts'
import { nodeName, startNodeHub, startNodeKubelet } from './node.ts'

t.setTimeout(600_000) // a control plane, a kubelet and kubectl processes share what cores there are

const kubectls = comparedKubectls()
const skip = noControlPlane() ?? (kubectls.length === 0 ? 'no kubectl on PATH' : false)
const withoutKubelet = noKubelet()

void t.test(
  'every kubectl prints the same through the hub',
  { skip, timeout: 600_000 },
  async (t) => {
    const plane = await startControlPlane(t, { controllerManager: true })
    // The hub's own credentials are the user's: kubectl sends none to a plain listener.
    const hub = await startNodeHub(plane, { kubeconfig: plane.kubeconfig(administrator) })
    if (withoutKubelet === undefined) await startTalker(t, plane)
    const pairs = kubectls.map((kubectl) => new Pair(plane, hub.url, kubectl))
    const readOnline = new Map<Pair, readonly Heard[]>()

    for (const pair of pairs) {
      await t.test(`${pair.version}: writes, reads, errors, discovery`, async (t) => {
        await pair.makeNamespaces()
        const { direct, hub } = pair.inOwnNamespaces()
        const [first, second] = await Promise.all([writeAndErr(direct), writeAndErr(hub)])
        same(t, second, first)
        same(t, [await watch(hub)], [await watch(direct)])
        const [readDirectly, readThroughHub] = await Promise.all([read(direct), read(hub)])
        same(t, readThroughHub, readDirectly)
        readOnline.set(pair, readThroughHub)
      })
      await t.test(
        `${pair.version}: logs, exec, port-forward`,
        { skip: withoutKubelet ?? false },
        async (t) => {
          const { direct, hub } = pair.in('default', 'default')
          const [first, second] = await Promise.all([talk(direct), talk(hub)])
          same(t, second, first)
        },
      )
    }

    await plane.first.daemon.kill()
    for (const pair of pairs)
      await t.test(`${pair.version}: offline, earlier reads print the same`, async (t) => {
        const { hub } = pair.inOwnNamespaces()
        const heard = await read(hub)
        t.ok(
          heard.some(([, said]) => said.stderr.includes(staleness)),
          'users get a warning',
        )
        same(
          t,
          heard.map(([step, said]) => [step, { ...said, stderr: withoutStaleness(said.stderr) }]),
          readOnline.get(pair) ?? [],
        )
      })
  },
)

/** One kubectl as two users use it: straight at the API server, and at the hub. */
class Pair {
  readonly version: string
  readonly #plane: ControlPlane
  readonly #kubectl: Kubectl
  readonly #throughHub: string

  constructor(plane: ControlPlane, hubUrl: string, kubectl: Kubectl) {
    this.version = kubectl.version
    this.#plane = plane
    this.#kubectl = kubectl
    this.#throughHub = plane.kubeconfig(administrator, hubUrl)
  }

  /** Makes them, with what the controllers put into every namespace. */
  async makeNamespaces(): Promise<void> {
    const { direct, hub } = this.inOwnNamespaces()
    await Promise.all([direct, hub].map(({ namespace }) => this.#namespace(namespace)))
  }

  inOwnNamespaces(): { direct: Session; hub: Session } {
    const suffix = this.version.replaceAll(/[^0-9]+/g, '-')
    return this.in(`direct${suffix}`, `hub${suffix}`)
  }

  in(direct: string, hub: string): { direct: Session; hub: Session } {
    return {
      direct: this.#session(this.#plane.kubeconfig(administrator), direct, 'direct'),
      hub: this.#session(this.#throughHub, hub, 'hub'),
    }
  }

  #session(kubeconfig: string, namespace: string, side: string): Session {
    const cacheFolder = this.#plane.workspace.file(`kubectl-${this.version}-${side}`)
    mkdirSync(cacheFolder, { recursive: true })
    return new Session({ kubectl: this.#kubectl.path, kubeconfig, namespace, cacheFolder })
  }

  async #namespace(name: string): Promise<void> {
    const { admin } = this.#plane
    await admin.post('/api/v1/namespaces', { metadata: { name } })
    await until(`the controllers to fill ${name}`, async () => {
      const { status } = await admin.get(`/api/v1/namespaces/${name}/configmaps/kube-root-ca.crt`)
      return status === 200
    })
  }
}

/** A node of its own, straight at the API server, with the pod whose log is read. */
async function startTalker(t: Test, plane: ControlPlane): Promise<void> {
  await startNodeKubelet(t, plane)
  await nodeReady(plane.admin, nodeName)
  await plane.admin.post('/api/v1/namespaces/default/pods', talker(nodeName))
  await podRunning(plane.admin, talkerName)
}

function same(t: Test, through: readonly Heard[], directly: readonly Heard[]): void {
  t.equal(through.length, directly.length, 'every step was taken')
  for (const [at, [step, said]] of directly.entries()) t.strictSame(through[at]?.[1], said, step)
}
