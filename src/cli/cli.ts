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
    summary: 'read flags, environment and file as start does, and say what is wrong or in force',
    load: async () => (await import('./check-config.ts')).checkConfig,
  },
  join: {
    summary: "write a node's files, so that its kubelet goes through the hub and it is in its pool",
    load: async () => (await import('./join-command.ts')).join,
  },
  leave: {
    summary: 'roll back what join has changed',
    load: async () => (await import('./leave-command.ts')).leave,
  },
  adopt: {
    summary: "put the hub in the place of a node's yurthub, or roll that back",
    load: async () => (await import('./adopt-command.ts')).adopt,
  },
  install: {
    summary: 'join or leave for the host of its container, as the installer DaemonSets run it',
    load: async () => (await import('./install-command.ts')).install,
  },
  inspect: {
    summary: 'show what the hub of this node does, has recorded and would come back with',
    load: async (argv) => (await import('./inspect/inspect.ts')).inspectOf(argv),
  },
  lint: {
    summary: 'say what the guidance for host-network pools finds in manifests and node files',
    load: async () => (await import('./lint-command.ts')).lint,
  },
  manifests: {
    summary: 'print a static pod, a kubeconfig for the kubelet, RBAC, a ConfigMap',
    load: async () => (await import('./manifests.ts')).manifests,
  },
  cluster: {
    summary: 'admission and the controller of NodePools, once per cluster',
    load: async (argv) => (await import('./cluster-command.ts')).clusterOf(argv),
  },
  kubectl: {
    summary: 'what kubectl nodehub runs: the hubs of all nodes, as the API server knows them',
    load: async (argv) => (await import('./kubectl/kubectl-command.ts')).kubectlOf(argv),
  },
  completion: {
    summary: 'print the script with which a shell completes commands and flags',
    load: async () => (await import('./completion/completion.ts')).completionOf(commands),
  },
  demo: {
    summary: 'a hub with an API server in memory and simulated clients, to try on a laptop',
    load: async () => (await import('./demo-command.ts')).demo,
  },
  version: {
    summary: 'print the versions of the hub and of what it runs on',
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

function unknown(word: string, terminal: Terminal): ExitCode {
  const instead = Object.hasOwn(gone, word) ? gone[word] : undefined
  if (instead !== undefined) return refuse(terminal, '', [instead])
  const suggestion = word.startsWith('-')
    ? ': flags come after a command, as in nodehub start --server-addr=...'
    : didYouMean(word, Object.keys(commands))
  return refuse(terminal, '', [`there is no command ${JSON.stringify(word)}${suggestion}`])
}

function overview(): string {
  const width = Math.max(...Object.keys(commands).map((name) => name.length))
  const lines = Object.entries(commands).map(
    ([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`,
  )
  return `nodehub: a Kubernetes API hub for one node. Online it passes everything through and remembers;
offline it answers from what it remembers.

Usage: nodehub COMMAND [FLAG...]

${lines.join('\n')}

nodehub COMMAND --help tells more; packages have all of it in man nodehub, and pages that are named
docs/NAME.md in /opt/nodehub/docs. Exit codes: 0, all is well; 1, failed while running; 2, invalid
arguments.
`
}
