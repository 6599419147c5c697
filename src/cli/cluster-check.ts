import type { ApiServer } from '../cluster/api/api-server.ts'
import { survey, type Survey } from '../cluster/components/survey.ts'
import type { Component } from '../cluster/components/component.ts'
import type { ExitCode, Terminal } from './command.ts'
import { quoted } from './exit-plan.ts'

/**
 * Reports which components of the pod network could run on host-network nodes, with the command
 * that keeps each off, and other differences from the pools. Exit code 1 if something is left to
 * do.
 */
export async function checkCluster(api: ApiServer, terminal: Terminal): Promise<ExitCode> {
  const out = (text: string): void => terminal.out(text)
  const { components, nodes, slippedIn }: Survey = await survey(api)
  if (components.length === 0) out('no known component of a pod network was found\n')
  for (const component of components) out(reportOf(component))
  for (const { node, remark } of nodes) out(`node ${node}: ${remark}\n`)
  for (const { namespace, name, node } of slippedIn)
    out(`pod ${namespace}/${name}: excluded from host-network pools, but on ${node}: delete it\n`)
  const left = components.filter(({ placement }) => !placement.keptOff)
  return left.length + nodes.length + slippedIn.length > 0 ? 1 : 0
}

function reportOf(component: Component): string {
  const { kind, namespace, name, placement, writer, what, affinity } = component
  const named = `${kind} ${namespace}/${name}`
  const old = placement.oldLabels.map(
    (label) => `${named}: ${label} is without effect: no node carries it\n`,
  )
  const state = placement.keptOff
    ? `${named} (${what}): kept off host-network nodes\n`
    : `${named} (${what}): not kept off host-network nodes; ${rolling(component)}\n  ${
        writer === undefined
          ? patchCommand(component)
          : `${writer} writes it, and could overwrite a patch: give its pods there the affinity ${JSON.stringify(affinity)}`
      }\n`
  return [...old, state].join('')
}

const rolling = ({ rolls, onDelete, kind }: Component): string =>
  onDelete
    ? 'a change takes effect as its pods are deleted'
    : `a change replaces ${rolls} ${rolls === 1 ? 'pod' : 'pods'}${kind === 'DaemonSet' ? ', one a node' : ''}`

function patchCommand({ kind, namespace, name, affinity }: Component): string {
  const patch = JSON.stringify({ spec: { template: { spec: { affinity } } } })
  const target = quoted(`${kind.toLowerCase()}/${name}`)
  return `kubectl patch -n ${quoted(namespace)} ${target} --type=merge -p ${quoted(patch)}`
}
