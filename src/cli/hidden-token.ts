/** The environment variable of `--join-token`. */
export const tokenVariable = 'NODEHUB_JOIN_TOKEN'

/**
 * Takes a bootstrap token off the command line, which other users of the node can read. The process
 * itself keeps its arguments.
 */
export function hideToken(argv: readonly string[]): void {
  if (!argv.some(isToken)) return
  process.title = [...process.execArgv, ...process.argv]
    .map((word, at, all) =>
      isToken(word) ? '--join-token' : isToken(all[at - 1] ?? '') ? '-' : word,
    )
    .join(' ')
}

interface CommandLine {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
}

/**
 * The same command line for another process, with a bootstrap token in the environment, which only
 * the same user and root can read. `bin/run.js` does the same.
 */
export function withTokenInEnvironment({ argv, env }: CommandLine): CommandLine {
  const at = argv.findLastIndex(isToken)
  const word = argv[at] ?? ''
  const token = word.includes('=') ? word.slice(word.indexOf('=') + 1) : argv[at + 1]
  if (at < 0 || token === undefined) return { argv, env }
  const others = argv.filter((word, i) => !isToken(word) && !isBare(argv[i - 1] ?? ''))
  return { argv: others, env: { ...env, [tokenVariable]: token } }
}

const isToken = (word: string): boolean => /^--?join[-_]token(=|$)/.test(word)
const isBare = (word: string): boolean => isToken(word) && !word.includes('=')
