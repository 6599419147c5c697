import { didYouMean } from '../config/suggestion.ts'
import { hideToken } from './hidden-token.ts'
import { helpOf } from './help.ts'
import { refuse, type CommandEntry, type ExitCode, type Terminal } from './command.ts'

/** Every command. */
export const commands: Readonly<Record<string, CommandEntry>> = {
  start: {
    summary: 'run the hub on a node',
    load: async () => (await import('./start.ts')).start,
  },
  'check-config': {
    summary: 'validate the settings of start, and print mistakes or the result',
    load: async () => (await import('./check-config.ts')).checkConfig,
  },
  join: {
    summary: "put the hub between this node's kubelet and its API servers",
    load: async () => (await import('./join-command.ts')).join,
  },
  leave: {
    summary: 'roll back everything that join has changed',
    load: async () => (await import('./leave-command.ts')).leave,
  },
  adopt: {
    summary: "replace this node's yurthub with the hub, or roll that back",
    load: async () => (await import('./adopt-command.ts')).adopt,
  },
  install: {
    summary: 'run join or leave on the host of its container, for the DaemonSets',
    load: async () => (await import('./install-command.ts')).install,
  },
  inspect: {
    summary: 'report what the hub of this node does, and what it has recorded',
    load: async (argv) => (await import('./inspect/inspect.ts')).inspectOf(argv),
  },
  lint: {
    summary: 'check manifests for host-network pools',
    load: async () => (await import('./lint-command.ts')).lint,
  },
  manifests: {
    summary: 'print manifests, units, RBAC and kubeconfigs',
    load: async () => (await import('./manifests.ts')).manifests,
  },
  cluster: {
    summary: 'run admission and the controller of NodePools, once per cluster',
    load: async (argv) => (await import('./cluster-command.ts')).clusterOf(argv),
  },
  kubectl: {
    summary: 'report on the hubs of all nodes, also as kubectl nodehub',
    load: async (argv) => (await import('./kubectl/kubectl-command.ts')).kubectlOf(argv),
  },
  completion: {
    summary: 'print the completion script for bash, zsh or fish',
    load: async () => (await import('./completion/completion.ts')).completionOf(commands),
  },
  demo: {
    summary: 'try a hub on a laptop, without a cluster',
    load: async () => (await import('./demo-command.ts')).demo,
  },
  version: {
    summary: 'print the versions of nodehub and Node',
    load: async () => (await import('./version.ts')).version,
  },
}

/** What takes the place of commands that an earlier release had. */
const gone: Readonly<Record<string, string>> = {
  backup: 'there is no backup any more: a hub reads its cache again from the cloud',
  restore: 'there is no restore any more: a hub reads its cache again from the cloud',
}

/** Runs the command in `argv`; resolves to the exit code of the process. */
export async function runCli(argv: readonly string[], terminal: Terminal): Promise<ExitCode> {
  const [word = '--help', ...rest] = argv
  if (word === '--help' || word === '-h' || word === 'help') return help(rest, terminal)
  const name = word === '--version' ? 'version' : word
  const entry = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (entry === undefined) return unknown(word, terminal)
  const command = await entry.load(rest)
  if (rest.includes('--help') || rest.includes('-h')) {
    terminal.out(helpOf(command, [name, ...rest]))
    return 0
  }
  hideToken(rest)
  return command.run(rest, terminal)
}

async function help([about, ...rest]: readonly string[], terminal: Terminal): Promise<ExitCode> {
  if (about === undefined || about.startsWith('-')) {
    terminal.out(overview())
    return 0
  }
  const entry = Object.hasOwn(commands, about) ? commands[about] : undefined
  if (entry === undefined) return unknown(about, terminal)
  terminal.out(helpOf(await entry.load(rest), [about, ...rest]))
  return 0
}

async function unknown(word: string, terminal: Terminal): Promise<ExitCode> {
  const instead = Object.hasOwn(gone, word) ? gone[word] : undefined
  if (instead !== undefined) return refuse(terminal, '', [instead])
  const { inspections } = await import('./inspect/table.ts')
  const suggestion = word.startsWith('-')
    ? ': flags come after a command, as in nodehub start --server-addr=...'
    : Object.hasOwn(inspections, word)
      ? `, did you mean inspect ${word}?`
      : didYouMean(word, Object.keys(commands))
  return refuse(terminal, '', [`there is no command ${JSON.stringify(word)}${suggestion}`])
}

function overview(): string {
  const width = Math.max(...Object.keys(commands).map((name) => name.length))
  const lines = Object.entries(commands).map(
    ([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`,
  )
  return `nodehub: a Kubernetes API hub for one node. Online it forwards requests to the API servers and
records the answers; offline it answers from its records.

Usage: nodehub COMMAND [FLAG...]

${lines.join('\n')}

New here? nodehub demo. On a node: nodehub inspect status.

nodehub COMMAND --help has the flags and examples of a command. Packages install man nodehub, and
the pages named docs/NAME.md in /opt/nodehub/docs.
Exit codes: 0, success; 1, the command failed or found something; 2, invalid arguments.
`
}
