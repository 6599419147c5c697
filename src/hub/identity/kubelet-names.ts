import { knownPrograms } from '../../api/kube/programs.ts'
import type { Component } from '../../api/request/component.ts'
import { namedBySelector, type RequestInfo } from '../../api/request/request-info.ts'

/** More names than a kubelet has. */
const mostNames = 16

/** The component of all requests of this node's kubelet. */
const kubelet = 'kubelet' as Component

/**
 * This node's kubelet by what it does: a program with the node's credentials that lists or watches
 * this Node, or its pods, is the kubelet from then on, whatever it is called (`kubelite` in
 * microk8s, `k3s`). Other programs that are known by their names keep them.
 */
export class KubeletNames {
  readonly #nodeName: string
  readonly #names = new Set<string>()

  constructor(nodeName: string) {
    this.#nodeName = nodeName
  }

  /** The component of a request with the node's credentials, from a program of this name. */
  componentOf(name: Component, info: RequestInfo): Component {
    if (this.#names.has(name)) return kubelet
    if (knownPrograms.has(name) || !this.#isKubelets(info)) return name
    // Clients choose their names.
    if (this.#names.size < mostNames) this.#names.add(name)
    return kubelet
  }

  /** As a kubelet makes its sources (k/k pkg/kubelet/config/apiserver.go and kubelet.go). */
  #isKubelets(info: RequestInfo): boolean {
    if (!info.isResource || info.gvr.group !== '' || info.namespace !== undefined) return false
    if (info.verb !== 'list' && info.verb !== 'watch') return false
    const selected = info.query.get('fieldSelector')
    return info.gvr.resource === 'nodes'
      ? namedBySelector(info) === this.#nodeName
      : info.gvr.resource === 'pods' && selected === `spec.nodeName=${this.#nodeName}`
  }
}
