import { readFileSync, statSync } from 'node:fs'
import { option } from '../config/option.ts'
import { reasonOf } from '../config/credentials.ts'
import { count, listOf, objectName, oneOf, type ValueType } from '../config/value.ts'
import { isObject, type JsonObject } from '../api/kube/json.ts'
import { contextOf, identityOf, type PoolFacts } from '../node/lint/context.ts'
import { podsOf } from '../node/lint/pod.ts'
import { findingsIn, rules } from '../node/lint/rules.ts'
import type { Level } from '../node/lint/finding.ts'
import { parseManifest, type ManifestObject, type Position } from '../node/lint/manifest.ts'
import { flagCommand } from './command-flags.ts'

const kindsOfPool = ['host-network', 'standard'] as const

/** `NAME=host-network:3`: replaces a NodePool that is not among the files. */
const pool: ValueType<readonly [string, PoolFacts]> = {
  placeholder: 'NAME=host-network|standard[:NODES]',
  parse(text) {
    const [, name = '', kind = '', nodes] = /^([^=]+)=([a-z-]+)(?::(\d{1,6}))?$/.exec(text) ?? []
    const known = kindsOfPool.find((word) => word === kind)
    if (known === undefined || 'wrong' in objectName.parse(name)) {
      return { wrong: 'is not NAME=host-network or NAME=standard, with or without :NODES' }
    }
    const counted = nodes === undefined ? {} : { nodes: Number(nodes) }
    return { value: [name, { hostNetwork: known === 'host-network', ...counted }] }
  },
}

export const lintFlags = {
  output: option({
    type: oneOf(['text', 'json']),
    default: 'text',
    short: 'o',
    help: 'For people or for programs.',
  }),
  pool: option({
    type: listOf(pool),
    help: 'The kind of a pool, and how many nodes are in it, where its NodePool is not among the files. May be given again.',
  }),
  'max-warnings': option({
    type: count(0, 1_000_000),
    defaultShown: 'no bound',
    help: 'How many warnings there may be until the exit code is 1.',
  }),
}

/**
 * Checks manifests and node files against the guidance for host-network pools, without a cluster.
 */
export const lint = flagCommand({
  usage: 'lint FILE... [FLAG...]',
  description: `Checks manifests against the rules for host-network pools: pods, templates of pods, NodePools,
namespaces, the kubelet's environment file and CNI configurations, in YAML or JSON; - reads standard
input. NodePools and Namespaces among the files tell the kind of a pool and what a namespace allows.
If two files have the same object, the first is the one in the cluster. docs/cli.md has every rule.

Exit codes: 0, no errors; 1, errors, or too many warnings; 2, invalid
arguments, or a file that cannot be read.
`,
  flags: lintFlags,
  files: true,
  wrongWords: (files) =>
    files.length === 0 ? ['FILE is missing: the name of a manifest, or - for standard input'] : [],
  async act({ values, words: files }, terminal) {
    const read = files.map((file) => ({ file, ...sourceOf(file) }))
    const wrong = read.flatMap(({ file, mistakes }) =>
      mistakes.map(({ line, column, message }) =>
        line === undefined ? `${file}: ${message}\n` : `${file}:${line}:${column}: ${message}\n`,
      ),
    )
    for (const each of wrong) terminal.err(`nodehub lint: ${each}`)
    const found = findingsOf(read, new Map(values.pool))
    terminal.out(
      values.output === 'json'
        ? `${JSON.stringify(found.map(explained), undefined, 2)}\n`
        : textOf(found),
    )
    if (wrong.length > 0) return 2
    const counted = (level: string): number => found.filter((each) => each.level === level).length
    return counted('error') > 0 || counted('warning') > (values['max-warnings'] ?? Infinity) ? 1 : 0
  },
})

/** A larger file is a mistake. */
const largest = 64 * 1024 * 1024

interface ReadSource {
  readonly objects: readonly ManifestObject[]
  /** Without a position if they concern the whole file. */
  readonly mistakes: readonly {
    readonly line?: number
    readonly column?: number
    readonly message: string
  }[]
}

function sourceOf(file: string): ReadSource {
  const nothing = (message: string): ReadSource => ({ objects: [], mistakes: [{ message }] })
  try {
    if (file !== '-' && statSync(file).size > largest) return nothing('it is larger than 64 MiB')
    const source = parseManifest(readFileSync(file === '-' ? 0 : file, 'utf8'))
    if (source.mistakes.length > 0 || source.objects.some(({ object }) => isChecked(object)))
      return source
    return nothing('it holds no Kubernetes object, kubelet environment or CNI configuration')
  } catch (cause) {
    return nothing(`it cannot be read: ${reasonOf(cause)}`)
  }
}

/**
 * Whether the object is of the API (a kubeconfig is not, though it has a kind), or one that rules
 * check without a kind.
 */
const isChecked = (object: JsonObject): boolean =>
  (typeof object['kind'] === 'string' && object['clusters'] === undefined) ||
  object['cniVersion'] !== undefined ||
  podsOf(object).length > 0

interface ReadFile {
  readonly file: string
  readonly objects: readonly ManifestObject[]
}

/** All findings, in the order of files and objects. */
function findingsOf(
  read: readonly ReadFile[],
  pools: ReadonlyMap<string, PoolFacts>,
): LocatedFinding[] {
  const context = contextOf(
    read.flatMap(({ objects }) => objects.map(({ object }) => object)),
    pools,
  )
  const before = new Map<string, JsonObject>()
  return read.flatMap(({ file, objects }) =>
    objects.flatMap(({ object, at }) => {
      const found = findingsIn(object, { ...context, before })
      const identity = identityOf(object)
      if (identity !== undefined) before.set(identity, object)
      return found.map(({ path, ...finding }) => ({
        file,
        ...at(path),
        ...finding,
        object: nameOf(object),
      }))
    }),
  )
}

function nameOf({ kind, metadata, cniVersion }: JsonObject): string {
  if (cniVersion !== undefined) return 'CNI configuration'
  if (typeof kind !== 'string') return 'part of a pod'
  if (!isObject(metadata) || typeof metadata['name'] !== 'string') return kind
  const { namespace, name } = metadata
  return `${kind} ${typeof namespace === 'string' ? `${namespace}/` : ''}${name}`
}

/** A finding with its file and position. */
interface LocatedFinding extends Position {
  readonly file: string
  readonly rule: string
  readonly level: Level
  readonly message: string
  /** The object it is about: `Deployment default/web`. */
  readonly object: string
}

function explained(finding: LocatedFinding): object {
  const { reason, document } = rules.find(({ id }) => id === finding.rule) ?? {}
  return { ...finding, reason, document }
}

/** One line per finding, and each rule's reason once. */
function textOf(found: readonly LocatedFinding[]): string {
  const lines = found.map(
    ({ file, line, column, level, object, message, rule }) =>
      `${file}:${line}:${column}: ${level}: ${object}: ${message} (${rule})\n`,
  )
  const met = new Set(found.map(({ rule }) => rule))
  const reasons = rules
    .filter(({ id }) => met.has(id))
    .map(({ id, reason, document }) => `\n${id}: ${reason}\n  ${document}\n`)
  return [...lines, ...reasons].join('')
}
