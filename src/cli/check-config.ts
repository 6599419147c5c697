import { createServer } from 'node:net'
import { now } from '../base/clock.ts'
import type { BootstrapConfig } from '../config/bootstrap.ts'
import { certificateFault } from '../config/credential-faults.ts'
import { readCredentials, type Credentials } from '../config/credentials.ts'
import type { HubConfig, Setting } from '../config/config.ts'
import { listenerNames } from '../config/passed-sockets.ts'
import { options } from '../config/options.ts'
import { processSources } from '../config/process.ts'
import { settingsInForce } from '../config/settings-in-force.ts'
import { bootstrapFault } from '../http/client/bootstrap-credentials.ts'
import { whyLater } from '../hub/store/log/recovery.ts'
import { formerStoreNote } from '../hub/wiring/store.ts'
import { listenAddresses } from '../hub/wiring/proxies.ts'
import { CannotListen, isMissingAddress, bindServer } from '../http/server/listening.ts'
import { refuse, type Command } from './command.ts'
import { readWithFilters } from './read-with-filters.ts'

/**
 * Reads the configuration as `start` does. The output is a file for `--config`, without secrets.
 */
export const checkConfig: Command = {
  usage: 'check-config [FLAG...]',
  description: `Reads flags, environment and files as nodehub start does, without starting anything. It loads the
modules of --filter-module, which runs them, and tries a bootstrap token at the API servers if the
hub has no certificate yet. It reports all mistakes together, with exit code 2, also a client
certificate that is not valid now and a cache of a later release; or it prints the settings in
force, in the form of a file for --config.
`,
  flags: options,
  flagsOf: 'start',
  async run(argv, terminal) {
    const sources = processSources(argv)
    const result = await readWithFilters(sources)
    if ('mistakes' in result) return refuse(terminal, 'check-config', result.mistakes)
    const later = whyLater(result.config.cachePath)
    if (later !== undefined) {
      const advice = 'move the files away and begin with an empty cache, while the node has a link'
      return refuse(terminal, 'check-config', [`${later}: start refuses it; ${advice}`])
    }
    // A mistake for this command only: `start` serves the cache offline with any certificate.
    const { credentials, bootstrap } = result.config
    const own = readCredentials(credentials, sources.readFile)
    const fault = certificateFault(own, now())
    if (fault !== undefined && bootstrap === undefined)
      return refuse(terminal, 'check-config', [fault])
    const state = bootstrap && bootstrapState(own, fault)
    const notes = [
      ...result.notes,
      ...(bootstrap === undefined || state === undefined
        ? []
        : [state, ...(await bootstrapNotes(result.config.serverAddresses, bootstrap))]),
      ...[formerStoreNote(result.config.cachePath) ?? []].flat(),
      ...(await takenPlaces(result.config)),
    ]
    for (const note of notes) terminal.err(`note: ${note}\n`)
    terminal.out(inForce(result.config, result.settings))
    return 0
  },
}

/** The remaining work for the hub's own certificate; `undefined`: none. */
function bootstrapState(own: Credentials, fault: string | undefined): string | undefined {
  if (own.awaited) return 'there is no client certificate yet: start requests one'
  return fault === undefined ? undefined : `${fault}: start requests another`
}

/** How long bootstrapping is tried. */
const bootstrapMs = 10_000

/** Why it would fail now. A note, not a mistake: start tries again for as long as it takes. */
async function bootstrapNotes(
  servers: readonly URL[],
  bootstrap: BootstrapConfig,
): Promise<readonly string[]> {
  const why = await bootstrapFault(servers, bootstrap, bootstrapMs)
  return why === undefined ? [] : [`no certificate would be obtained now: ${why}`]
}

/** The addresses that are in use. Notes, not mistakes: usually the running hub uses them. */
async function takenPlaces(config: HubConfig): Promise<readonly string[]> {
  const notes: string[] = []
  for (const place of listenerNames.flatMap((name) => listenAddresses(config, name))) {
    if ('fd' in place) continue
    const server = createServer()
    try {
      await bindServer(server, [place], () => undefined)
      server.close()
    } catch (failure) {
      if (!(failure instanceof CannotListen)) throw failure
      if (!(isMissingAddress(failure) && place.ifPresent === true)) notes.push(failure.message)
    }
  }
  return notes
}

/**
 * Every setting on a line. Defaults are commented out: the file stays true if a default changes.
 */
const inForce = (config: HubConfig, settings: readonly Setting[]): string =>
  settingsInForce(config, settings)
    .filter(({ name }) => name !== 'config')
    .map(({ name, value, origin, redacted }) => {
      if (redacted) return `# ${name}: ${value} # ${origin}\n`
      if (origin !== undefined) return `${name}: ${JSON.stringify(value)} # ${origin}\n`
      // This default depends on other settings: either value would change it.
      const isRefusing = name === 'plain-proxy' && config.plainProxy === 'refusing'
      return value === '' || isRefusing ? `# ${name}:\n` : `# ${name}: ${JSON.stringify(value)}\n`
    })
    .join('')
