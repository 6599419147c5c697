#!/usr/bin/env node

// Before anything else is loaded: as long as no handler listens for it, Node opens its debugger on
// SIGUSR1, to every program of the host. With --disable-sigusr1 it does not from the first moment
// on.
process.on('SIGUSR1', () => undefined)

const { runCli } = await import('./cli/cli.ts')
const code = await runCli(process.argv.slice(2), {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
})
// Set, not forced: what was written to a pipe still gets through. What a command leaves open keeps
// the process alive on purpose.
process.exitCode = code
