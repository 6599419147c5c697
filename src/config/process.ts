import { readFileSync, statSync } from 'node:fs'
import { hostname, networkInterfaces } from 'node:os'
import type { ConfigSources } from './config.ts'
import { passedSockets } from './listen-fds.ts'

/** Configuration and credentials are small: a larger file is a mistake. */
const largest = 4 * 1024 * 1024

/** A file's text; throws where it cannot be read or is too large. */
function readFile(path: string): string {
  if (statSync(path).size > largest) throw new Error('it is larger than 4 MiB')
  return readFileSync(path, 'utf8')
}

/** The inputs of this process. */
export const processSources = (argv: readonly string[]): ConfigSources => ({
  argv,
  env: process.env,
  readFile,
  hostname: hostname(),
  addresses: Object.values(networkInterfaces()).flatMap((some = []) =>
    some.map(({ address }) => address),
  ),
  passed: passedSockets(process.env, process.pid),
})

/** The options that Node was started with, on its command line and by the environment. */
export const optionsOfNode = (): readonly string[] => [
  ...process.execArgv,
  ...(process.env['NODE_OPTIONS'] ?? '').split(/\s+/),
]
