import { readFileSync, statSync, writeFileSync } from 'node:fs'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { textAt } from '../../src/api/kube/json-at.ts'
import type { Workspace } from '../../test/kit/cluster/workspace.ts'
import { administrator } from '../../test/kit/control-plane.ts'
import { countsOf } from './outcome.ts'
import { namespaces } from './workloads.ts'

/**
 * Writes in the namespaces of the pods alone: leases and the status of nodes are written whatever
 * becomes of pods.
 */
const policy = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [
    {
      level: 'Metadata',
      namespaces: Object.values(namespaces),
      verbs: ['create', 'update', 'patch', 'delete', 'deletecollection'],
    },
    { level: 'None' },
  ],
}

/** What an API server notes of the writes it was asked for. */
export class Audit {
  readonly flags: readonly string[]
  readonly #path: string

  constructor(workspace: Workspace) {
    this.#path = workspace.file('audit.jsonl')
    const policyFile = workspace.file('audit-policy.json')
    writeFileSync(policyFile, JSON.stringify(policy))
    writeFileSync(this.#path, '')
    this.flags = [
      `--audit-policy-file=${policyFile}`,
      `--audit-log-path=${this.#path}`,
      '--audit-log-maxsize=10000',
    ]
  }

  /** Now, for `since`. */
  mark(): number {
    return statSync(this.#path).size
  }

  /**
   * How often what was asked for by whom since then, refused or not: `kubelet patch pods/status`.
   * What the bench itself asks for is left out, what the API server tells of itself, and what is
   * told of `nodes`: such events stand among those of pods.
   */
  since(mark: number, nodes: readonly string[]): Readonly<Record<string, number>> {
    const lines = readFileSync(this.#path).subarray(mark).toString().split('\n')
    const entries = lines
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as JsonObject)
    const by = (entry: JsonObject): string => textAt(entry, 'user', 'username')
    return countsOf(
      entries
        .filter((entry) => !others.has(by(entry)) && !isAbout(entry, nodes))
        .map((entry) => `${shortOf(by(entry))} ${textAt(entry, 'verb')} ${resourceOf(entry)}`)
        .toSorted(),
    )
  }
}

/** An event is named for what it is about. */
const isAbout = (entry: JsonObject, nodes: readonly string[]): boolean =>
  nodes.some((node) => textAt(entry, 'objectRef', 'name').startsWith(`${node}.`))

const others: ReadonlySet<string> = new Set([administrator.commonName, 'system:apiserver'])

/** The program's name, whatever node it is on. */
const shortOf = (user: string): string =>
  user.startsWith('system:node:') ? 'kubelet' : user.slice(user.lastIndexOf(':') + 1)

function resourceOf(entry: JsonObject): string {
  const [resource, subresource] = ['resource', 'subresource'].map((member) =>
    textAt(entry, 'objectRef', member),
  )
  return subresource ? `${resource}/${subresource}` : (resource ?? '')
}
