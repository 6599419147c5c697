import { isList, isObject, type Json, type JsonObject } from '../../../api/kube/json.ts'
import { valueAt, optionalTextAt, listAt, objectAt, textAt } from '../../../api/kube/json-at.ts'
import { documents } from '../documents.ts'
import type { Path } from '../finding.ts'
import type { Rule } from '../rule.ts'

/**
 * Flags of the kubelet that ended, and with which release. It does not start with a flag that it
 * does not know.
 */
export const endedFlags = new Map([
  ['network-plugin', '1.24'],
  ['cni-conf-dir', '1.24'],
  ['cni-bin-dir', '1.24'],
  ['cni-cache-dir', '1.24'],
  ['network-plugin-mtu', '1.24'],
  ['container-runtime', '1.27'],
  ['pod-infra-container-image', '1.35'],
])

export const kubeletFlags: Rule = {
  id: 'kubelet-flags',
  level: 'error',
  title: 'flags that the kubelet no longer has',
  reason:
    'The kubelet does not start with a flag that it does not know. Since 1.24 only the container runtime reads the configuration of the pod network.',
  document: documents.kubelet,
  *checkObject(object) {
    for (const { path, text } of argumentsIn(object)) {
      const name = /^-{1,2}([\w-]+)/.exec(text)?.[1] ?? ''
      const release = endedFlags.get(name)
      if (release !== undefined) {
        yield {
          path,
          // The oldest kubelets that are still about have all flags that ended later.
          level: release === '1.35' ? 'warning' : 'error',
          message: `the kubelet has no --${name} since ${release}: leave it out${name.startsWith('cni-') || name === 'network-plugin' ? ", and configure the container runtime's CNI folder instead" : ''}`,
        }
      } else if (/^[‐-―−]/.test(text)) {
        yield {
          path,
          message: `${text.split('=')[0]} begins with a dash that is none to a program: write --`,
        }
      }
    }
  },
}

/**
 * The arguments of a kubelet: lines of its environment file, or kubeletExtraArgs of a kubeadm
 * configuration.
 */
function* argumentsIn(object: JsonObject): Generator<{ path: Path; text: string }> {
  if (object['kind'] === 'KubeletFlags') {
    for (const [name, words] of Object.entries(objectAt(object, 'variables')))
      for (const [index, text] of (isList(words) ? words : []).entries())
        if (typeof text === 'string') yield { path: ['variables', name, index], text }
  }
  const path = ['nodeRegistration', 'kubeletExtraArgs']
  const extra: Json | undefined = valueAt(object, ...path)
  if (isObject(extra)) {
    for (const name of Object.keys(extra)) yield { path: [...path, name], text: `--${name}` }
  } else {
    for (const [index, each] of listAt(object, ...path).entries())
      yield { path: [...path, index], text: `--${textAt(each, 'name')}` }
  }
}

export const loopbackOnly: Rule = {
  id: 'loopback-only',
  level: 'note',
  title: 'a CNI configuration of the loopback plugin alone',
  reason:
    'It makes a node Ready without a pod network, as a host-network pool needs it. A pod without hostNetwork gets no address there, and its sandbox is made again for ever.',
  document: documents.cni,
  *checkObject(object) {
    if (optionalTextAt(object, 'cniVersion') === undefined) return
    const plugins = isList(object['plugins'])
      ? object['plugins'].map((plugin) => optionalTextAt(plugin, 'type'))
      : [optionalTextAt(object, 'type')]
    if (plugins.length === 0 || plugins.some((plugin) => plugin !== 'loopback')) return
    yield {
      path: isList(object['plugins']) ? ['plugins'] : ['type'],
      message:
        'for the nodes of a host-network pool alone: with this every pod that runs there has to say hostNetwork: true',
    }
  },
}
