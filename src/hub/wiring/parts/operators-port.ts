import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ownPath } from '../../../base/own-version.ts'
import type { Secret } from '../../../base/secret.ts'
import { storedToken } from '../../../base/stored-key.ts'
import type { SettingsReport } from '../../../config/settings-in-force.ts'
import type { Listener } from '../../../http/server/listener.ts'
import { listenOps } from '../../../http/server/ops.ts'
import type { PageFile } from '../../../http/server/status-page.ts'
import type { NodeWrites } from '../../answers/node-writes.ts'
import { isRoot } from '../../identity/caller.ts'
import { mayInspect } from '../../identity/inspectors.ts'
import { refusalLine } from '../../pipeline/trace.ts'
import type { HubContext } from '../hub-context.ts'
import { logFailure } from '../log-failure.ts'
import { ownHosts } from '../names.ts'
import { listenAddresses } from '../proxies.ts'
import { contentReports } from '../status/object-report.ts'
import { statusReport, type StatusParts } from '../status/status.ts'
import type { IdentityParts } from './identity.ts'

interface Dependencies extends StatusParts, Pick<IdentityParts, 'owners'> {
  readonly writes: NodeWrites
  readonly settings: (() => SettingsReport) | undefined
}

/** Listens for probes, scrapers and `nodehub inspect`, and serves the status page. */
export function openOperatorsPort(parts: Dependencies): Promise<Listener> {
  const { config, boot, answers, checks, verboseLines, settings, metrics, log } = parts
  const { hostNetwork, obtained, owners } = parts
  const { configMap } = parts.inputs
  const token = inspectToken(parts)
  return listenOps({
    at: listenAddresses(config, 'ops'),
    metrics,
    ownHosts: ownHosts(config),
    checks,
    verboseLines,
    inspections: {
      reports: {
        status: statusReport(parts),
        boot: () => boot.verdict(),
        'host-network': () => hostNetwork.report(),
        ...(settings && {
          config: async () => ({ ...settings(), configMap: configMap.report() }),
        }),
      },
      tails: { requests: answers },
      content: {
        reports: contentReports({ ...parts, running: parts }),
        authorize: async ({ peer }) => isRoot(peer, owners),
      },
      authorize: (caller) => mayInspect(caller, token, owners),
    },
    page: pageFiles(),
    joinToken: {
      authorize: async ({ peer }) => isRoot(peer, owners),
      replace: (token) => obtained.replaceToken(token),
    },
    onBroken: (err) =>
      logFailure(log, 'debug', { err }, 'a connection to the operators’ port broke off'),
    onRefused: (incoming, reply) => answers.log({ ...refusalLine(incoming, reply), ms: 0 }),
  })
}

/**
 * The token with which callers other than root may inspect the hub: it is under `--root-dir`, for
 * root to hand out. Absent where the disk cannot store one.
 */
function inspectToken({ config, log }: HubContext): Secret<string> | undefined {
  const file = join(config.rootDir, 'inspect.token')
  try {
    return storedToken(file)
  } catch (err) {
    log.warn({ err, file }, 'the inspect token cannot be read or made: root alone can inspect')
    return undefined
  }
}

const types: Readonly<Record<string, string>> = {
  'index.html': 'text/html; charset=utf-8',
  'page.css': 'text/css; charset=utf-8',
  'page.js': 'text/javascript; charset=utf-8',
  'icon.svg': 'image/svg+xml',
}

/** The files of the status page by their paths; none where the folder `status-page` is missing. */
function pageFiles(): ReadonlyMap<string, PageFile> {
  const page = ownPath('status-page/index.html')
  if (page === undefined) return new Map()
  return new Map(
    Object.entries(types).map(([name, type]) => [
      name === 'index.html' ? '/' : `/${name}`,
      { type, content: readFileSync(join(dirname(page), name)) },
    ]),
  )
}
