import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { basename, join } from 'node:path'
import { now } from '../../base/clock.ts'
import { ownVersion } from '../../base/own-version.ts'
import { isAlikeForAll } from '../../api/kube/gvk.ts'
import { nodes } from '../../api/kube/resources.ts'
import { nodeIdentity } from '../../api/request/identity.ts'
import { objectRepresentation } from '../../api/request/representation.ts'
import { readCredentials } from '../../config/credentials.ts'
import { obtainedFiles } from '../../config/root-dir.ts'
import { kubeletCache } from '../boot/kubelet-cache.ts'
import { NodePods } from '../boot/needs.ts'
import { bootVerdict, type BootVerdict } from '../boot/verdict.ts'
import { NodeWrites } from '../answers/node-writes.ts'
import { hostNetworkReport, type HostNetworkReport } from './status/host-network-report.ts'
import { unknownInputs } from '../filter/inputs.ts'
import type { LogStore } from '../store/log/log-store.ts'
import { checkStopped, openStopped } from '../store/log/open.ts'
import { podsAsListed } from './host-network.ts'
import { sealingKeyIn } from './node-key.ts'
import { certificateStatuses, type CertificateStatus } from './status/certificates.ts'
import { collectionStatuses, bootStatus, mostItems, type HubStatus } from './status/status.ts'
import { contentReports, type PodReport, type ObjectReport } from './status/object-report.ts'

/** Where the state of a hub is. */
export interface StateFolders {
  readonly rootDir: string
  readonly cachePath: string
}

/** The status of a hub that is not running, from the disk, with the names of `HubStatus`. */
export interface StoppedStatus extends Pick<
  HubStatus,
  'at' | 'node' | 'version' | 'collections' | 'boot' | 'certificates'
> {
  readonly stopped: true
  readonly cache: Pick<HubStatus['cache'], 'bytes'>
}

/** The networks of pods; the mode of propagation is in no file. */
export type StoppedNetworks = Omit<HostNetworkReport, 'mode'> & { readonly mode: 'unknown' }

/**
 * The report of a stopped hub at `/inspect/<path>`, which may have a query, from the files on the
 * disk, which stay as they are. `undefined` where only a running hub has such a report. Rejects
 * with a message for people, also where a hub is running.
 */
export async function stoppedReport(
  folders: StateFolders,
  path: string,
): Promise<Report | undefined> {
  const [name = '', query = ''] = path.split('?')
  const read = Object.hasOwn(reports, name) ? reports[name] : undefined
  if (!read) return undefined
  const { rootDir, cachePath } = folders
  // Without the key other records can be read as well.
  const key = sealingKeyIn(rootDir)
  await using store = await openStopped({
    directory: cachePath,
    sealingKey: key ?? Buffer.alloc(32),
    isShared: isAlikeForAll,
  })
  const report = await read({
    ...folders,
    store,
    nodeName: nodeNameIn(store),
    hasKey: key !== undefined,
    query: new URLSearchParams(query),
  })
  await checkStopped(cachePath)
  return report
}

interface StoppedParts extends StateFolders {
  readonly store: LogStore
  readonly nodeName: string
  /** Whether the hub's own key can open sealed records. */
  readonly hasKey: boolean
  readonly query: URLSearchParams
}

type Report = StoppedStatus | BootVerdict | StoppedNetworks | ObjectReport | PodReport

const reports: Readonly<Record<string, (parts: StoppedParts) => Promise<Report>>> = {
  status,
  boot,
  'host-network': hostNetwork,
  get: (parts) => content(parts, 'get'),
  pod: (parts) => content(parts, 'pod'),
}

/** Only a running hub can report the decisions of filters on an object. */
async function content(parts: StoppedParts, name: 'get' | 'pod'): Promise<ObjectReport> {
  const { store, rootDir, hasKey, query } = parts
  const read = contentReports({
    store,
    writes: new NodeWrites(now),
    hostNetwork: { report: () => hostNetwork(parts) },
  })
  if (!hasKey && name === 'get' && /^secrets?$/i.test(query.get('kind') ?? ''))
    throw new Error(`Secrets cannot be read: there is no key in ${rootDir} that opens them`)
  const report = await read[name](query)
  if (!report) throw new Error('no component of this node has read objects of this kind')
  return report
}

async function status(parts: StoppedParts): Promise<StoppedStatus> {
  const { rootDir, store, nodeName, hasKey } = parts
  return {
    stopped: true,
    at: new Date(now()).toISOString(),
    node: nodeName,
    version: ownVersion(),
    cache: { bytes: store.bytes },
    collections: collectionStatuses(store.overview(mostItems), () => undefined),
    boot: hasKey ? bootStatus(await boot(parts)) : null,
    certificates: certificatesIn(rootDir),
  }
}

async function boot({ rootDir, store, nodeName, hasKey }: StoppedParts): Promise<BootVerdict> {
  if (!hasKey) {
    throw new Error(
      `no boot verdict: there is no key in ${rootDir} that opens tokens; a key that is handed in (--store-key-credential, --store-key-command) is with the running hub only`,
    )
  }
  return bootVerdict({
    nodeName,
    needs: await new NodePods(nodeName).needs(kubeletCache(store, nodeName)),
    now: now(),
    lastRefresh: () => undefined,
    // No API server is reachable from here.
    oldBefore: 0,
    refused: [],
  })
}

/** The mode of propagation, the node's pool and the ports of the hub are in no file. */
async function hostNetwork({ store, nodeName }: StoppedParts): Promise<StoppedNetworks> {
  const report = await hostNetworkReport({
    inputs: { ...unknownInputs, nodeName },
    pods: podsAsListed(store, nodeName),
    reserved: [],
  })
  return { ...report, mode: 'unknown' }
}

/** The name under which the kubelet has read its node, else that of this host. */
function nodeNameIn(store: LogStore): string {
  const selectors = (['protobuf', 'json'] as const).flatMap((encoding) => {
    const { key: representation } = objectRepresentation(encoding)
    const all = store.collections({ identity: nodeIdentity, representation }, nodes, undefined)
    return all.map(({ key }) => key.fieldSelector)
  })
  const named = selectors.map((selector) => /^metadata\.name=([^,]+)$/.exec(selector)?.[1])
  return named.find((name) => name !== undefined) ?? hostname().toLowerCase()
}

/**
 * The certificates that the hub keeps itself. Which files its flags name is not known while it is
 * stopped.
 */
function certificatesIn(rootDir: string): readonly CertificateStatus[] {
  const { folder, pair, ca } = obtainedFiles(rootDir)
  const readFile = (file: string): string => readFileSync(file, 'utf8')
  const own = readCredentials({ kind: 'bootstrap', pair, ca }, readFile)
  const names = existsSync(folder) ? readdirSync(folder) : []
  const shown = names.filter((name) => name.endsWith('-current.pem') && name !== basename(pair))
  const at = now()
  return [
    ...certificateStatuses(own, { certificate: '', clientCa: own.ca ?? '' }, at),
    ...shown.flatMap((name) => {
      const file = join(folder, name)
      const serving = { certificate: readFile(file), clientCa: '' }
      return certificateStatuses({}, serving, at).map((one) => ({ ...one, file }))
    }),
  ]
}
