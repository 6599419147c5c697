import type { ApiClient } from '../kit/cluster/api-client.ts'
import { versionBefore } from '../kit/cluster/releases.ts'
import { administrator, type ControlPlane } from '../kit/control-plane.ts'
import type { Kubelet } from '../kit/kubelet.ts'
import { until } from '../kit/until.ts'
import { objectThat } from './seen.ts'

const pods = '/api/v1/namespaces/default/pods'

/** Since 1.34 the status of a pod has the generation that the kubelet has acted upon. */
const hasObservedGeneration = versionBefore('1.34') === undefined

/** Changes pods in a way that has no effect, and waits until their kubelet has acted upon it. */
export class ObservedChanges {
  readonly #admin: ApiClient
  readonly #plane: ControlPlane
  readonly #kubelet: Kubelet
  /** May only be lowered. */
  #deadline = 100_000

  constructor(plane: ControlPlane, kubelet: Kubelet) {
    this.#admin = plane.admin
    this.#plane = plane
    this.#kubelet = kubelet
  }

  /** Resolves when the kubelet has compared each of these pods with what it runs. */
  async make(names: readonly string[]): Promise<void> {
    for (const name of names) await this.#change(name)
    for (const name of names) await this.#observed(name)
  }

  async #change(name: string): Promise<void> {
    const content = JSON.stringify({ spec: { activeDeadlineSeconds: --this.#deadline } })
    const type = 'application/merge-patch+json'
    const { status } = await this.#admin.send('PATCH', `${pods}/${name}`, content, type)
    if (status !== 200) throw new Error(`a change of pod ${name} was answered ${status}`)
  }

  async #observed(name: string): Promise<void> {
    if (hasObservedGeneration) {
      await objectThat(this.#admin, `${pods}/${name}`, (pod) => {
        return pod.status?.observedGeneration === pod.metadata.generation
      })
      return
    }
    const changed = (await this.#admin.get(`${pods}/${name}`)).json().spec?.activeDeadlineSeconds
    await until(`the kubelet to know of the change of ${name}`, async () => {
      const { items = [] } = await this.#kubelet.pods(this.#plane.credentials(administrator))
      const own = items.find(({ metadata }) => metadata.name === name)
      return own?.spec?.activeDeadlineSeconds === changed
    })
  }
}
