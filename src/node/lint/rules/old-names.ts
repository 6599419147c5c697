import { isList, isObject, type Json } from '../../../api/kube/json.ts'
import { valueAt } from '../../../api/kube/json-at.ts'
import { hostNetworkLabel } from '../../../api/kube/node-pool.ts'
import { isNodePool } from '../context.ts'
import { documents } from '../documents.ts'
import type { Path } from '../finding.ts'
import { inMetadata } from '../pod.ts'
import type { Rule } from '../rule.ts'

/** Labels of the proposals that no release of OpenYurt sets on a node. */
export const oldLabels = ['nodepool.openyurt.io/host-network', 'nodepool.openyurt.io/network-mode']

export const oldLabel: Rule = {
  id: 'old-label',
  level: 'error',
  title: 'a label of the proposals that no node carries',
  reason: `The label was renamed before it came out: nodes of host-network pools carry ${hostNetworkLabel}=true. A pod that an old name is to keep off such nodes is scheduled there all the same, and a pod that selects an old name is scheduled nowhere.`,
  document: documents.proposal,
  *checkObject(object) {
    for (const { path, text } of textsIn(object)) {
      const found = oldLabels.find((label) => names(text, label))
      if (found === undefined) continue
      yield {
        path,
        message: `${found} is without effect: the label is ${hostNetworkLabel}, with the value "true"`,
      }
    }
  },
}

/** The label itself, or in a flag: `--node-labels=LABEL=true`. */
const names = (text: string, label: string): boolean =>
  text === label || text.split(/[\s,=]/).includes(label)

/** Of the proposals, for spec.hostNetwork. */
const oldFields = ['networkMode', 'node-network-mode', 'nodeNetworkMode']

export const oldField: Rule = {
  id: 'old-field',
  level: 'error',
  title: 'a field of the proposals that a NodePool does not have',
  reason:
    'The API server drops fields that a NodePool does not have: the pool becomes a standard pool, and cannot be changed later.',
  document: documents.proposal,
  *checkObject(object) {
    if (!isNodePool(object)) return
    for (const field of oldFields) {
      if (valueAt(object, 'spec', field) === undefined) continue
      yield {
        path: ['spec', field],
        message: `spec.${field} is without effect: write spec.hostNetwork: true`,
      }
    }
  },
}

export const oldFilter: Rule = {
  id: 'old-filter',
  level: 'warning',
  title: 'a filter of the proposal that was never released under that name',
  reason:
    'A filter podhostnetwork is in no release of OpenYurt; it came out as hostnetworkpropagation, and was taken out again.',
  document: documents.withdrawal,
  *checkObject(object) {
    for (const { path, text } of textsIn(object)) {
      if (!/\bpodhostnetwork\b/.test(text)) continue
      yield {
        path,
        message:
          'podhostnetwork is without effect: the filter is hostnetworkpropagation, and it acts where --host-network-propagation enables it',
      }
    }
  },
}

const desiredPoolLabels = [
  'apps.openyurt.io/desired-nodepool',
  'nodepool.openyurt.io/desired-nodepool',
]

export const desiredPoolLabel: Rule = {
  id: 'pool-wished-by-label',
  level: 'note',
  title: 'a label of a pod that names a pool',
  reason:
    'A label of a pod chooses no node, and gives it hostNetwork only where admission is configured to (opt-in).',
  document: documents.proposal,
  *checkPod(pod) {
    for (const label of desiredPoolLabels) {
      if (valueAt(pod.metadata, 'labels', label) === undefined) continue
      yield {
        path: inMetadata(pod, 'labels', label),
        message:
          'by itself the label does not bring the pod there, nor onto the host network: say nodeSelector apps.openyurt.io/nodepool and hostNetwork: true',
      }
    }
  },
}

/** Every member's name and every string in an object, with its path. */
function* textsIn(
  value: Json,
  path: Path = [],
): Generator<{ readonly path: Path; readonly text: string }> {
  if (typeof value === 'string') yield { path, text: value }
  else if (isList(value)) {
    for (const [index, each] of value.entries()) yield* textsIn(each, [...path, index])
  } else if (isObject(value)) {
    for (const [name, each] of Object.entries(value)) {
      yield { path: [...path, name], text: name }
      yield* textsIn(each, [...path, name])
    }
  }
}
