import { nodes, pathOf } from '../../api/kube/resources.ts'
import { now } from '../../base/clock.ts'
import type { ApiServer } from '../../cluster/api/api-server.ts'
import { option, type OptionTable, type ValuesOf } from '../../config/option.ts'
import { didYouMean } from '../../config/suggestion.ts'
import { messageOf } from '../../config/settings.ts'
import { boolean, objectName, text } from '../../config/value.ts'
import { refuse, type Command, type ExitCode, type Terminal } from '../command.ts'
import { flagCommand, type GivenFlags } from '../command-flags.ts'
import { helpOf } from '../help.ts'
import { outputFlag, printed } from '../inspect/printed.ts'
import { withApi } from '../with-api.ts'
import { fleetOf, fleetTable, nodeText, statusTable } from './fleet.ts'
import { isWrong, stateOf, type NodeState } from './node-state.ts'
import { questionOf, atNode, known, knownText } from './why.ts'

const commonFlags = {
  output: outputFlag,
  kubeconfig: option({
    type: text('FILE'),
    defaultShown: '$KUBECONFIG, else ~/.kube/config',
    help: 'The kubeconfig for the API server.',
  }),
  context: option({
    type: text('NAME'),
    defaultShown: 'its current one',
    help: 'The context of the kubeconfig.',
  }),
}

const fleetFlags = {
  ...commonFlags,
  selector: option({
    type: text('SELECTOR'),
    defaultShown: 'all nodes',
    help: 'Which nodes, by their labels.',
    short: 'l',
  }),
  'no-headers': option({
    type: boolean,
    help: 'Prints neither the head of the table nor the summary.',
  }),
}

const whyFlags = {
  ...commonFlags,
  namespace: option({
    type: objectName,
    defaultShown: 'all',
    help: 'The namespace of the request.',
    short: 'n',
  }),
}

interface Subcommand<Flags extends OptionTable> extends Pick<Command, 'description'> {
  /** With words before the flags, as help texts have them. */
  readonly typed: string
  readonly flags: Flags
  /** How many words there have to be, and may be. */
  readonly takes: readonly [number, number]
  /** What is wrong with the words. */
  readonly wrong?: (words: readonly string[]) => readonly string[]
  readonly act: (api: ApiServer, given: GivenFlags<Flags>, terminal: Terminal) => Promise<ExitCode>
}

function subcommand<const Flags extends typeof commonFlags>(one: Subcommand<Flags>): Command {
  const { typed, description, flags, takes, act } = one
  const [least, most] = takes
  const [name = '', ...words] = typed.split(' ')
  return flagCommand<Flags>({
    usage: `kubectl ${typed} [FLAG...]`,
    description,
    flags,
    afterFlags: exitCodes,
    wrongWords(given) {
      if (given.length < least) return [`it needs ${words.join(' ')}`]
      if (given.length > most) return [`${JSON.stringify(given[most])} is one word too many`]
      return one.wrong?.(given) ?? []
    },
    act(given, terminal) {
      const { kubeconfig: file, context } = given.values as ValuesOf<typeof commonFlags>
      const access = {
        kind: 'kubeconfig',
        ...(file !== undefined && { file }),
        ...(context !== undefined && { context }),
      } as const
      const config = { access, namespace: 'kube-system' }
      const asking = { command: `kubectl ${name}`, terminal, failed: 2 } as const
      return withApi(config, asking, (api) => act(api, given, terminal))
    },
  })
}

const exitCodes = `Exit codes: 0, all is well; 1, a node is offline or something fails; 2, invalid arguments, or
nothing can be read.
`

const subcommands: Readonly<Record<string, Command>> = {
  fleet: subcommand({
    typed: 'fleet',
    description: `One line for each node, the worst first: whether it is online and since when it has been so, the
release of its hub, whether the node and its pods would come back without a link, and what fails.
Nodes report with nodehub start --offline-ready-condition; the rest comes from their kubelet.
`,
    flags: fleetFlags,
    takes: [0, 0],
    act: (api, given, terminal) => showFleet(api, given, terminal, fleetTable),
  }),
  status: subcommand({
    typed: 'status [NODE]',
    description: `Of the fleet: how many nodes run each release of the hub, are online, would come back without a
link, and are wrong. Of a node: all that its hub has reported.
`,
    flags: fleetFlags,
    takes: [0, 1],
    async act(api, given, terminal) {
      const { values, words } = given
      const [name] = words
      if (name === undefined) return showFleet(api, given, terminal, statusTable)
      const state = await stateAt(api, name)
      terminal.out(printed(state, values.output, () => nodeText(state)))
      return codeOf([state])
    },
  }),
  why: subcommand({
    typed: 'why NODE REQUEST',
    description: `The last such requests at the hub of a node and why each was answered so, and what the hub would
answer from without a link. REQUEST is VERB RESOURCE[/NAME], or a path, with a method or without.

Reports are on the node's loopback alone: the hub is queried in its pod, by kubectl exec, for which
your user needs list of pods and create of pods/exec. Where that cannot be done, what to run at the
node is printed.
`,
    flags: whyFlags,
    takes: [2, 3],
    wrong([, ...request]) {
      const question = questionOf(request, '')
      return 'wrong' in question ? [question.wrong] : []
    },
    act: why,
  }),
}

async function showFleet(
  api: ApiServer,
  { values }: GivenFlags<typeof fleetFlags>,
  terminal: Terminal,
  table: typeof fleetTable,
): Promise<ExitCode> {
  const states = await fleetOf(api, values.selector ?? '')
  const shown = (): string => table(states, !values['no-headers'])
  terminal.out(printed({ nodes: states }, values.output, shown))
  return codeOf(states)
}

const codeOf = (states: readonly NodeState[]): ExitCode => (states.some(isWrong) ? 1 : 0)

async function stateAt(api: ApiServer, name: string): Promise<NodeState> {
  const node = await api.get(pathOf(nodes, '', name))
  if (!node) throw new Error(`there is no node ${JSON.stringify(name)}`)
  return stateOf(node, now())
}

async function why(
  api: ApiServer,
  { words, values }: GivenFlags<typeof whyFlags>,
  terminal: Terminal,
): Promise<ExitCode> {
  const question = questionOf(words.slice(1), values.namespace ?? '')
  if ('wrong' in question) throw new Error(question.wrong)
  const state = await stateAt(api, words[0] ?? '')
  try {
    if (state.online === false) throw new Error(`${state.name} is offline since ${state.since}`)
    const flags = [
      ...(values.kubeconfig === undefined ? [] : [`--kubeconfig=${values.kubeconfig}`]),
      ...(values.context === undefined ? [] : [`--context=${values.context}`]),
    ]
    const found = await known(api, state.name, question, flags)
    terminal.out(printed(found, values.output, () => knownText(found, question)))
    return 0
  } catch (cause) {
    throw new Error(
      `${messageOf(cause)}. Its reports are on the node's loopback alone: at the node, as root, run\n  ${atNode(question)}\n  nodehub inspect cache`,
      { cause },
    )
  }
}

/** `nodehub kubectl`, or its subcommand that `argv` names. */
export const kubectlOf = ([word]: readonly string[]): Command =>
  (word !== undefined && Object.hasOwn(subcommands, word) ? subcommands[word] : undefined) ??
  kubectl

const names = Object.keys(subcommands)

const kubectl: Command = {
  usage: `kubectl ${names.join('|')} [FLAG...]`,
  description: `Reports on the hubs of all nodes, from what they write to their Nodes: fleet prints a line for each
node, status counts nodes by release or describes one, why explains the answers of one node's hub.
It changes nothing. Your user needs the rights to get and list nodes. Where kubectl does not find
the plugin, run nodehub kubectl.

Each subcommand has its own help: kubectl nodehub fleet --help.

${exitCodes}`,
  subcommands: names,
  async run([word, ...rest], terminal) {
    if (word === undefined || word === 'help') {
      terminal.out(helpOf(kubectlOf(rest), ['kubectl', ...rest]))
      return 0
    }
    return refuse(terminal, 'kubectl', [
      `there is no command ${JSON.stringify(word)}${didYouMean(word, names)}`,
    ])
  },
}
