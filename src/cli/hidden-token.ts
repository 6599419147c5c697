/**
 * Takes a bootstrap token off the command line, which other users of the node can read. The process
 * itself, and a successor, keep their arguments.
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
