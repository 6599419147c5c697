#!/usr/bin/env node

// Before anything else is loaded: as long as no handler listens for it, Node opens its debugger on
// SIGUSR1, to every program of the host. With --disable-sigusr1 it does not from the first moment
// on.
process.on('SIGUSR1', () => undefined)

const { basename } = await import('node:path')
const { runCli } = await import('./cli/cli.ts')
// kubectl runs a program of this name for `kubectl nodehub`.
const plugin = basename(process.argv[1] ?? '') === 'kubectl-nodehub' ? ['kubectl'] : []
const code = await runCli([...plugin, ...process.argv.slice(2)], {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
})
// Set, not forced: what was written to a pipe still gets through. What a command leaves open keeps
// the process alive on purpose.
process.exitCode = code
