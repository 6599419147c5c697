import { namespacedName } from '../../api/kube/object.ts'
import type { BootVerdict, Problem } from '../../hub/boot/verdict.ts'
import { aligned } from '../aligned.ts'
import { inspection } from './inspection.ts'
import { paragraphs } from './printed.ts'

/** Exit code 1: the node or a pod would not come back. */
export const boot = inspection<BootVerdict>({
  ofStopped: true,
  read: (from) => from.report('boot'),
  table: bootTable,
  code: ({ ready }) => (ready ? 0 : 1),
})

/** Problems first. */
function bootTable({ ready, node, pods, tokensUntil }: BootVerdict): string {
  const waiting = pods.filter((pod) => !pod.ready)
  const sentence = ready
    ? `Node ${node.name} and its pods (${pods.length}) would come back without a link.`
    : node.ready
      ? `Node ${node.name} would come back without a link; ${waiting.length} of its ${pods.length} pods would not.`
      : node.unread
        ? `Nothing of node ${node.name} is recorded yet: its kubelet has not read its node and its pods through the hub.`
        : `Node ${node.name} would not come back without a link.`
  const until =
    tokensUntil === undefined ? '' : `The first token of a pod expires at ${tokensUntil}.\n`
  const rows = [
    ...node.problems.map((problem) => ['(node)', ...cells(problem)]),
    ...waiting.flatMap(({ namespace, name, problems }) =>
      problems.map((problem) => [`${namespace}/${name}`, ...cells(problem)]),
    ),
  ]
  const old = pods.flatMap((pod) =>
    pod.old.map((old) => [
      `${pod.namespace}/${pod.name}`,
      old.resource,
      namespacedName(old),
      old.confirmedAt,
    ]),
  )
  const tokens = pods
    .filter((pod) => pod.ready)
    .map((pod) => [`${pod.namespace}/${pod.name}`, pod.tokensUntil ?? ''])
  return paragraphs(
    `${sentence}\n${until}`,
    aligned(['POD', 'WHY', 'WHAT', 'NAME', 'MEANING'], rows),
    aligned(['POD', 'OLD', 'NAME', 'CONFIRMED'], old),
    aligned(['WOULD COME BACK', 'TOKENS UNTIL'], tokens),
  )
}

const cells = (problem: Problem): string[] => [
  problem.reason,
  problem.resource,
  namespacedName(problem),
  problem.message,
]
