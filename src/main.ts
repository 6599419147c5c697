#!/usr/bin/env node
import { runCli } from './cli/cli.ts'

const code = await runCli(process.argv.slice(2), {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
})
// Set, not forced: what was written to a pipe still gets through. What a command leaves open keeps the process alive on purpose.
process.exitCode = code
