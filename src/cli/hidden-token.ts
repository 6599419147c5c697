/** The environment variable of `--join-token`. */
export const tokenVariable = 'NODEHUB_JOIN_TOKEN'

/**
 * Takes a bootstrap token off the command line, which other users of the node can read. The process
 * itself keeps its arguments. `bin/run.js` moves it to the environment.
 */
export function hideToken(argv: readonly string[]): void {
  if (!argv.some(isToken)) return
  process.title = [...process.execArgv, ...process.argv]
    .map((word, at, all) =>
      isToken(word) ? '--join-token' : isToken(all[at - 1] ?? '') ? '-' : word,
    )
    .join(' ')
}

const isToken = (word: string): boolean => /^--?join[-_]token(=|$)/.test(word)
