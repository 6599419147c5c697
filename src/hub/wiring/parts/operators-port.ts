import { join, dirname } from 'node:path'
import type { Logger } from 'pino'
import type { RecentLines } from '../../../base/recent-items.ts'
import type { Secret } from '../../../base/secret.ts'
import { storedToken } from '../../../base/stored-key.ts'
import type { StartConfig } from '../../../config/hub-config.ts'
import type { SettingsReport } from '../../../config/settings-in-force.ts'
import type { Listener } from '../../../http/server/listener.ts'
import { listenOps, type ReadinessCheck } from '../../../http/server/ops.ts'
import type { HubMetrics } from '../../../metrics/metrics.ts'
import type { Cacher } from '../../cache/cacher/cacher.ts'
import { isRoot } from '../../identity/caller.ts'
import { mayInspect } from '../../identity/inspectors.ts'
import type { OpenRequest } from '../../pipeline/open-requests.ts'
import { refusalLine } from '../../pipeline/trace.ts'
import type { NodeWrites } from '../../answers/node-writes.ts'
import type { AnswerRecord } from '../answer-record.ts'
import type { Boot } from '../boot.ts'
import { listenAddresses } from '../proxies.ts'
import type { LogStore } from '../../store/log/log-store.ts'
import { logFailure } from '../log-failure.ts'
import { ownHosts } from '../names.ts'
import { contentReports } from '../status/object-report.ts'
import { statusReport } from '../status/status.ts'
import type { CloudParts } from './cloud.ts'
import type { FilterParts, InputParts } from './filters.ts'
import type { IdentityParts } from './identity.ts'
import { existsSync, readFileSync } from 'node:fs'
import type { PageFile } from '../../../http/server/status-page.ts'

interface Dependencies {
  readonly config: StartConfig
  readonly cloud: CloudParts
  readonly store: LogStore
  readonly filters: FilterParts
  readonly inputs: InputParts
  readonly identity: IdentityParts
  readonly boot: Boot
  readonly cachers: () => readonly Cacher[]
  readonly writes: NodeWrites
  readonly answers: AnswerRecord
  readonly open: Iterable<OpenRequest>
  readonly checks: readonly ReadinessCheck[]
  readonly verboseLines: () => readonly string[]
  readonly settings: (() => SettingsReport) | undefined
  readonly recentLog: RecentLines | undefined
  readonly metrics: HubMetrics
  readonly log: Logger
}

/** Listens for probes, scrapers and `nodehub inspect`, and serves the status page. */
export function openOperatorsPort(parts: Dependencies): Promise<Listener> {
  const { config, store, boot, answers, open, checks, verboseLines, settings, metrics, log } = parts
  const { cloud, connections, serving, obtained } = parts.cloud
  const { filters, hostNetwork } = parts.filters
  const { configMap, requested } = parts.inputs
  const { owners } = parts.identity
  const inspectors = { token: inspectToken(config, log), owners }
  const status = statusReport({
    config,
    cloud,
    connections,
    serving,
    renewalFaults: () => ({ client: obtained.fault, serving: requested?.fault }),
    store,
    cachers: parts.cachers,
    answers,
    open,
    boot,
    hostNetwork,
    filters,
    checks,
    verboseLines,
    log: parts.recentLog,
  })
  return listenOps({
    at: listenAddresses(config, 'ops'),
    metrics,
    ownHosts: ownHosts(config),
    checks,
    verboseLines,
    inspections: {
      reports: {
        status,
        boot: () => boot.verdict(),
        'host-network': () => hostNetwork.report(),
        ...(settings && {
          config: async () => ({ ...settings(), configMap: configMap.report() }),
        }),
      },
      tails: { requests: answers },
      content: {
        reports: contentReports({
          store,
          writes: parts.writes,
          running: { filters, answers, open },
          hostNetwork,
        }),
        authorize: async ({ peer }) => isRoot(peer, owners),
      },
      authorize: (caller) => mayInspect(caller, inspectors),
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
function inspectToken({ rootDir }: StartConfig, log: Logger): Secret<string> | undefined {
  const file = join(rootDir, 'inspect.token')
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
  const folder = pageFolder()
  if (folder === undefined) return new Map()
  return new Map(
    Object.entries(types).map(([name, type]) => [
      name === 'index.html' ? '/' : `/${name}`,
      { type, content: readFileSync(join(folder, name)) },
    ]),
  )
}

/** It is above this file, in the sources as among the built files. */
function pageFolder(): string | undefined {
  for (let folder = import.meta.dirname; ; folder = dirname(folder)) {
    const here = join(folder, 'status-page')
    if (existsSync(join(here, 'index.html'))) return here
    if (dirname(folder) === folder) return undefined
  }
}
