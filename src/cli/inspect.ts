import { get } from 'node:http'
import { parseArgs } from 'node:util'
import { wholeAnswer } from '../base/whole-answer.ts'
import type { BootVerdict, Problem } from '../boot/verdict.ts'
import { nearest } from '../config/suggestion.ts'
import { address, oneOf, port } from '../config/value.ts'
import type { HostNetworkReport } from '../filter/host-network/report.ts'
import { aligned } from './aligned.ts'
import { refuse, type Command, type ExitCode } from './command.ts'
import { hostNetworkCode, hostNetworkTable } from './inspect-host-network.ts'

const flags = {
  output: { type: 'string', short: 'o', default: 'table' },
  'bind-address': { type: 'string', default: '127.0.0.1' },
  'serve-port': { type: 'string', default: '10267' },
} as const

/** Asks the hub that runs on this node. */
export const inspect: Command = {
  help: () => `Usage: nodehub inspect boot|host-network [FLAG...]

Asks the hub that runs on this node. Names of objects are shown, and nothing of what is in them.

  boot          whether the node and each of its pods would come back now without a link, as after
                a power cut: what is missing from the cache, old or expired, for which pod
  host-network  on which network the kubelet is shown each pod, what --host-network-propagation=on
                would make of it, which ports it declares, and which of them clash on this node

Exit codes: 0, everything would come back, no ports clash; 1, something would not, ports clash;
2, not understood, or the hub could not be asked.

  -o, --output table|json
        For people or for programs. Default: table.
  --serve-port PORT
        Where the hub has its health. Default: 10267.
  --bind-address ADDRESS
        The same, of loopback: elsewhere the hub does not tell. Default: 127.0.0.1.
`,
  async run(argv, terminal) {
    const { mistakes, what, output, host, at } = understood(argv)
    if (mistakes.length > 0) return refuse(terminal, 'inspect', mistakes)
    let said: unknown
    try {
      said = JSON.parse(await told(host, at, what))
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause)
      terminal.err(`nodehub inspect: the hub at ${host}:${at} could not be asked: ${why}\n`)
      return 2
    }
    const { table, code } =
      what === 'boot' ? boot(said as BootVerdict) : network(said as HostNetworkReport)
    terminal.out(output === 'json' ? `${JSON.stringify(said, undefined, 2)}\n` : table())
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
  code: hostNetworkCode(report),
})

const inspections = ['boot', 'host-network'] as const

interface Understood {
  readonly mistakes: readonly string[]
  readonly what: (typeof inspections)[number]
  readonly output: string
  readonly host: string
  readonly at: number
}

/** What the words after `inspect` ask for, and all that is wrong with them. */
export function understood(argv: readonly string[]): Understood {
  const mistakes: string[] = []
  const { values, positionals, tokens } = parseArgs({
    args: [...argv],
    options: flags,
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  for (const token of tokens) {
    if (token.kind !== 'option') continue
    if (!Object.hasOwn(flags, token.name)) {
      const meant = nearest(token.name, Object.keys(flags))
      mistakes.push(`${token.rawName} is not known${meant ? `, did you mean --${meant}?` : ''}`)
    } else if (!token.value) mistakes.push(`${token.rawName} needs a value`)
  }
  const [word, ...more] = positionals
  const what = inspections.find((each) => each === word)
  if (!what) mistakes.push('it is boot or host-network that can be inspected')
  for (const word of more) mistakes.push(`${JSON.stringify(word)} is not a flag`)
  const text = (name: keyof typeof flags): string => String(values[name])
  const checks = [
    ['output', oneOf(['table', 'json'])],
    ['bind-address', address],
    ['serve-port', port],
  ] as const
  for (const [name, type] of checks) {
    const checked = type.parse(text(name))
    if ('wrong' in checked)
      mistakes.push(`--${name}: ${JSON.stringify(text(name))} ${checked.wrong}`)
  }
  const at = Number(text('serve-port'))
  return { mistakes, what: what ?? 'boot', output: text('output'), host: text('bind-address'), at }
}

const patienceMs = 30_000

/** The answer of the hub's port for operators. Rejects with a message for people. */
async function told(host: string, at: number, what: string): Promise<string> {
  const asking = get({ host, port: at, path: `/inspect/${what}`, agent: false })
  const { status, text } = await wholeAnswer(asking, patienceMs)
  if (status === 200) return text
  throw new Error(`${status} ${text.trim().slice(0, 200)}`)
}

/** What is in the way comes first, since that is what somebody looks for. */
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
    pod.old.map(({ resource, namespace, name, confirmedAt }) => [
      `${pod.namespace}/${pod.name}`,
      resource,
      namespace === '' ? name : `${namespace}/${name}`,
      confirmedAt,
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

const cells = ({ reason, resource, namespace, name, message }: Problem): string[] => [
  reason,
  resource,
  namespace === '' ? name : `${namespace}/${name}`,
  message,
]
