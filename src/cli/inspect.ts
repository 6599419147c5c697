import { readFileSync } from 'node:fs'
import { get } from 'node:http'
import { wholeAnswer } from '../base/whole-answer.ts'
import type { BootVerdict, Problem } from '../hub/boot/verdict.ts'
import { address, oneOf, optional, port, text } from '../config/value.ts'
import { messageOf } from '../config/settings.ts'
import type { HostNetworkReport, PodOnNode } from '../hub/filter/host-network/report.ts'
import { namespacedName } from '../api/kube/object.ts'
import { aligned } from './aligned.ts'
import { refuse, type Command, type ExitCode } from './command.ts'
import { commandFlag, helpOfFlags, readFlags, strayWords } from './command-flags.ts'

const inspectFlags = {
  output: commandFlag({
    type: oneOf(['table', 'json']),
    default: 'table',
    help: 'For people or for programs.',
    short: 'o',
  }),
  'serve-port': commandFlag({
    type: port,
    default: 10267,
    help: "The port of the hub's health and metrics.",
  }),
  'bind-address': commandFlag({
    type: address,
    default: '127.0.0.1',
    help: 'Its address, on loopback: elsewhere the hub does not answer inspections.',
  }),
  'token-file': commandFlag({
    type: optional(text('FILE')),
    default: undefined,
    help: "A copy of inspect.token from the hub's --root-dir, for users other than root.",
  }),
}

/** Inspects the hub that runs on this node. */
export const inspect: Command = {
  help: () => `Usage: nodehub inspect boot|host-network [FLAG...]

Inspects the hub that runs on this node. Shows names of objects, never their content, to root and to
holders of the hub's token.

  boot          whether the node and each of its pods would come back now without a link, as after
                a power cut: what is missing from the cache, old or expired, for which pod
  host-network  on which network the kubelet is shown each pod, what --host-network-propagation=on
                would make of it, which ports it declares, and which of them clash on this node

Exit codes: 0, everything would come back, no ports clash; 1, something would not, ports clash;
2, not understood, or the hub could not be asked.

${helpOfFlags(inspectFlags)}`,
  async run(argv, terminal) {
    const { values, what, mistakes } = parseInspection(argv)
    if (what === undefined || mistakes.length > 0) return refuse(terminal, 'inspect', mistakes)
    const { 'bind-address': host, 'serve-port': at, 'token-file': tokenFile } = values
    let report: unknown
    try {
      report = JSON.parse(await fetchReport(host, at, what, tokenFile))
    } catch (cause) {
      const why = messageOf(cause)
      terminal.err(`nodehub inspect: the hub at ${host}:${at} could not be asked: ${why}\n`)
      return 2
    }
    const { table, code } =
      what === 'boot' ? boot(report as BootVerdict) : network(report as HostNetworkReport)
    terminal.out(values.output === 'json' ? `${JSON.stringify(report, undefined, 2)}\n` : table())
    return code
  },
}

interface Shown {
  readonly table: () => string
  readonly code: ExitCode
}

const boot = (verdict: BootVerdict): Shown => ({
  table: () => bootTable(verdict),
  code: verdict.ready ? 0 : 1,
})

const network = (report: HostNetworkReport): Shown => ({
  table: () => hostNetworkTable(report),
  code: report.pods?.some(({ clashes }) => clashes.length > 0) ? 1 : 0,
})

const inspections = ['boot', 'host-network'] as const

/** Parses the arguments of `inspect`. There is a mistake if `what` is `undefined`. */
export function parseInspection(argv: readonly string[]) {
  const { values, words, mistakes } = readFlags(inspectFlags, argv)
  const [word, ...more] = words
  const what = inspections.find((each) => each === word)
  const missing = what ? [] : ['it is boot or host-network that can be inspected']
  return { values, what, mistakes: [...mistakes, ...missing, ...strayWords(more)] }
}

const patienceMs = 30_000

/** The answer of the hub's operations port. Rejects with a message for people. */
async function fetchReport(
  host: string,
  at: number,
  what: string,
  tokenFile: string | undefined,
): Promise<string> {
  const headers = tokenFile === undefined ? {} : { Authorization: `Bearer ${tokenIn(tokenFile)}` }
  const request = get({ host, port: at, path: `/inspect/${what}`, headers, agent: false })
  const { status, text: body } = await wholeAnswer(request, patienceMs)
  if (status === 200) return body
  const help = status === 401 || status === 403 ? `. ${asRoot}` : ''
  throw new Error(`${status} ${body.trim().slice(0, 200)}${help}`)
}

function tokenIn(file: string): string {
  try {
    return readFileSync(file, 'latin1').trim()
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw new Error(`--token-file=${file} cannot be read: ${code}`, { cause })
  }
}

const asRoot = 'Run this command as root, or with --token-file=FILE'

/** Problems first. */
function bootTable({ ready, node, pods, tokensUntil }: BootVerdict): string {
  const waiting = pods.filter((pod) => !pod.ready)
  const sentence = ready
    ? `Node ${node.name} and its pods (${pods.length}) would come back without a link.`
    : node.ready
      ? `Node ${node.name} would come back without a link; ${waiting.length} of its ${pods.length} pods would not.`
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
  return [
    `${sentence}\n${until}`,
    aligned(['POD', 'WHY', 'WHAT', 'NAME', 'MEANING'], rows),
    aligned(['POD', 'OLD', 'NAME', 'CONFIRMED'], old),
    aligned(['WOULD COME BACK', 'TOKENS UNTIL'], tokens),
  ]
    .filter((part) => part !== '')
    .join('\n')
}

const cells = (problem: Problem): string[] => [
  problem.reason,
  problem.resource,
  namespacedName(problem),
  problem.message,
]

/** The report on the pods of a host-network node, for people; problems come first. */
function hostNetworkTable({ mode, pool, hostNetworkPool, pods }: HostNetworkReport): string {
  const kind =
    hostNetworkPool === 'unknown'
      ? 'whether its pool is a host-network pool has never been known'
      : `its pool is ${hostNetworkPool ? 'a' : 'no'} host-network pool`
  const named = pool === undefined ? '' : ` (${pool})`
  const head = `--host-network-propagation is ${mode}; ${kind}${named}.\n`
  if (!pods) return `${head}The kubelet has never listed its pods here, or they cannot be read.\n`
  const clashes = pods.flatMap((pod) =>
    pod.clashes.map((clash) => [nameOf(pod), `${clash.port}/${clash.protocol}`, clash.with]),
  )
  return [
    head,
    aligned(['POD', 'PORT', 'CLASHES WITH'], clashes),
    aligned(
      ['POD', 'SHOWN ON', 'KEPT', 'IF NEW, WITH ON', 'PORTS'],
      pods.map((pod) => [
        nameOf(pod),
        networks[pod.network],
        pod.verdict ?? '-',
        pod.anew,
        pod.ports.map(({ containerPort, protocol }) => `${containerPort}/${protocol}`).join(' '),
      ]),
    ),
  ]
    .filter((part) => part !== '')
    .join('\n')
}

const networks: Readonly<Record<PodOnNode['network'], string>> = {
  host: 'host, as it asks',
  propagated: 'host, propagated',
  pod: 'pod network',
}

const nameOf = ({ namespace, name }: PodOnNode): string => `${namespace}/${name}`
