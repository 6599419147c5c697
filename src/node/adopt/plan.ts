import { createPrivateKey, X509Certificate } from 'node:crypto'
import { dirname, join } from 'node:path'
import { blocksIn } from '../../certificates/bundle.ts'
import { pemOfKey } from '../../certificates/keys.ts'
import { now } from '../../base/clock.ts'
import { readConfig } from '../../config/config.ts'
import { certificateFault } from '../../config/credential-faults.ts'
import {
  kubeletCredentials,
  readCredentials,
  type CredentialFiles,
  type Credentials,
} from '../../config/credentials.ts'
import { obtainedFiles } from '../../config/root-dir.ts'
import { messageOf } from '../../config/settings.ts'
import { hostCommandFiles, hostCommandPath, hostCommandPaths } from '../join/host-command.ts'
import { flagsPath, hubFiles, hubPaths, type HubRunner } from '../join/hub-files.ts'
import type { FileChange } from '../join/join.ts'
import { isSameFile, ownRights, type NodeFile, type NodeFiles } from '../join/node-files.ts'
import { JoinArchive, sha256 } from '../join/record.ts'
import { runtimeIn } from '../join/runnable.ts'
import { hubArgs } from '../join/static-pod.ts'
import { isHubOfNode, yurthubOf } from '../join/yurthub.ts'
import { Adoption, asideOf, type AdoptionRecord } from './adoption-record.ts'
import { mapFlags, type MappedFlags } from './mapped-flags.ts'
import type { Swap } from './swap.ts'
import { startOfPod, startOfService, type YurthubStart } from './yurthub-start.ts'

export interface AdoptionSettings {
  /** Where the node's root is. */
  readonly root: string
  readonly rootDir: string
  readonly manifestFolder: string
  readonly image: string
  /** Whether systemd runs the hub; absent: as it runs yurthub. */
  readonly systemd: boolean | undefined
  /** The hub's credentials; absent: those of the kubelet, else yurthub's own. */
  readonly kubeconfig: string | undefined
  readonly hubCertSigner: string | undefined
  /** Whether the hub writes a condition and a report to its Node. */
  readonly reports: boolean
  /** Names of yurthub's flags to leave out. */
  readonly dropped: readonly string[]
  readonly hostname: string
  /** Flags of the hub besides. */
  readonly more: readonly string[]
}

export interface AdoptionPlan extends Swap {
  readonly flags: MappedFlags
  readonly nodeName: string
  /** Whether systemd runs yurthub. */
  readonly isUnit: boolean
  /** The file that starts yurthub. */
  readonly source: string
  /** The identity of the hub. */
  readonly credentials: Credentials
  readonly credentialsFrom: string
  /** Files and folders that stay as they are. */
  readonly left: readonly string[]
  readonly notes: readonly string[]
  /** Whether an adoption was interrupted, which this one continues. */
  readonly isBegun: boolean
}

/** The node cannot be adopted; nothing has been changed. */
export class CannotAdopt extends Error {
  readonly code = 'CANNOT_ADOPT'
  /** One sentence each. */
  readonly reasons: readonly string[]

  constructor(reasons: readonly string[]) {
    super(reasons.join('; '))
    this.reasons = reasons
  }
}

/** Plans an adoption without changing anything. Throws `CannotAdopt`. */
export function planAdoption(files: NodeFiles, settings: AdoptionSettings): AdoptionPlan {
  const { rootDir, manifestFolder, dropped, hubCertSigner } = settings
  const existing = new Adoption(files, rootDir).read()
  if (existing?.phase === 'adopted') {
    throw new CannotAdopt(['the node is adopted already: nodehub adopt --rollback rolls that back'])
  }
  const found = existing?.yurthub ?? yurthubOf(files, manifestFolder)?.path
  if (found === undefined) {
    throw new CannotAdopt([
      `no yurthub starts with this node: there is no yurt-hub.yaml or yurthub.yaml in ${manifestFolder} (--manifest-dir) and no unit yurthub.service`,
    ])
  }
  const isUnit = found.endsWith('.service')
  const runBy: HubRunner =
    (settings.systemd ?? isUnit)
      ? { systemd: true }
      : { staticPod: `${manifestFolder}/nodehub.yaml` }
  refuseOtherHubs(files, rootDir, existing, runBy)
  const shared = sharedCredentials(files, settings)
  const certified = 'value' in shared ? nodeOf(shared.value) : undefined
  const nodeName = certified ?? settings.hostname.toLowerCase()
  const start = existing?.start ?? startOf(files, found, nodeName)
  const flags = mapFlags(start.flags, { dropped, hubCertSigner })
  const yurthubRoot = valueOf(start.flags, 'root-dir') ?? '/var/lib/yurthub'
  const credentials =
    'value' in shared ? shared : ownOfYurthub(files, yurthubRoot, rootDir, shared.fault)
  const { ports } = flags
  const name = flags.nodeName ?? nodeName
  const mistakes = [
    ...flags.mistakes,
    ...flags.serverAddresses
      .filter((server) => isHubOfNode(server, ports, [settings.hostname, name]))
      .map((server) => `--server-addr=${server.origin} is a hub of this node itself`),
  ]
  const hub = {
    serverAddresses: flags.serverAddresses.map(({ origin }) => origin).join(','),
    namespace: flags.namespace,
    rootDir,
    kubeconfig: settings.kubeconfig,
    ownCertificate: credentials.seed !== undefined,
    ...(flags.nodePool !== undefined && { nodePool: flags.nodePool }),
    ports,
    reports: settings.reports,
    more: [
      ...flags.more,
      ...(hubCertSigner === undefined ? [] : [`--hub-cert-signer=${hubCertSigner}`]),
      ...settings.more,
    ],
    image: settings.image,
    nodeName: flags.nodeName ?? ('systemd' in runBy ? name : undefined),
    runtime: runtimeIn(files),
  }
  const seeded = new Map(credentials.seed?.map(({ path, content }) => [path, content]))
  for (const { path, target } of credentials.links ?? [])
    seeded.set(path, seeded.get(join(dirname(path), target)) ?? '')
  const read = readConfig({
    argv: hubArgs(hub).slice(1),
    env: { NODE_NAME: name },
    hostname: name,
    readFile: (path) => seeded.get(path) ?? files.text(path),
  })
  if ('mistakes' in read && mistakes.length === 0) mistakes.push(...read.mistakes)
  const aside = isUnit ? (existing?.aside ?? startLinks(files)) : [found]
  for (const path of aside) {
    if (existing || !files.isThere(asideOf(path))) continue
    mistakes.push(
      `${asideOf(path)} is there, and no adoption is recorded in ${rootDir} (--root-dir): is it of another one?`,
    )
  }
  if (mistakes.length > 0) throw new CannotAdopt(mistakes)
  const own = (path: string, mode: number, content: string): FileChange => ({
    path,
    before: files.read(path),
    after: { content: Buffer.from(content), ...ownRights(mode) },
  })
  const command = existing?.written.find(({ path }) => hostCommandPaths.includes(path))?.path
  const ofHub = [
    ...hubFiles(runBy, hub),
    ...hostCommandFiles(command ?? hostCommandPath(files, settings.root), rootDir, runBy),
  ].map(({ path, mode, content }) => own(path, mode, content))
  const seed = (credentials.seed ?? []).map(({ path, content }) => own(path, 0o600, content))
  const writes = [...seed, ...ofHub]
  const links = credentials.links ?? []
  const changed = ({ before, after }: FileChange): boolean => !isSameFile(before, after)
  const early = 'systemd' in runBy ? writes : seed
  return {
    flags,
    nodeName: name,
    isUnit,
    source: found,
    credentials: credentials.value,
    credentialsFrom: credentials.from,
    links,
    before: early.filter(changed),
    after: writes.filter((each) => !early.includes(each)).filter(changed),
    isBegun: existing !== undefined,
    left: leftAlone(files, start, yurthubRoot),
    notes: [
      ...('notes' in read ? read.notes.filter((note) => !isShown(note, flags)) : []),
      ...notesOn(start, flags, settings),
    ],
    record: {
      version: 1,
      phase: existing?.phase === 'starting' ? 'starting' : 'adopting',
      yurthub: found,
      start,
      runBy,
      aside,
      written: [
        ...writes.map(({ path, after }) => ({ path, sha256: sumOf(after) })),
        ...links.map(({ path }) => ({ path, sha256: null })),
      ],
      folders: [
        ...new Set([
          ...(existing?.folders ?? []),
          ...ofHub.flatMap(({ path }) => files.missingAbove(path)),
        ]),
      ],
      ports,
    },
  }
}

const sumOf = (file: NodeFile | undefined): string => sha256(file?.content ?? Buffer.alloc(0))

function startOf(files: NodeFiles, found: string, nodeName: string): YurthubStart {
  try {
    return found.endsWith('.service')
      ? startOfService(files)
      : startOfPod(files.read(found)?.content.toString() ?? '', nodeName)
  } catch (cause) {
    throw new CannotAdopt([`${found}: ${messageOf(cause)}`])
  }
}

const unitFolder = '/etc/systemd/system'

/** By these systemd starts yurthub at boot. */
const startLinks = (files: NodeFiles): readonly string[] =>
  files
    .names(unitFolder)
    .filter((name) => /\.(?:wants|requires)$/.test(name))
    .map((folder) => `${unitFolder}/${folder}/yurthub.service`)
    .filter((path) => files.isThere(path))

function refuseOtherHubs(
  files: NodeFiles,
  rootDir: string,
  existing: AdoptionRecord | undefined,
  runBy: HubRunner,
): void {
  if (new JoinArchive(files, rootDir).read() !== undefined)
    throw new CannotAdopt(['the node has joined with nodehub join: nodehub leave first'])
  if (existing && 'systemd' in existing.runBy !== 'systemd' in runBy) {
    throw new CannotAdopt([
      'an adoption with another kind of hub was interrupted: nodehub adopt --rollback first',
    ])
  }
  const own = new Set(existing?.written.map(({ path }) => path))
  const other: readonly HubRunner[] = [
    { systemd: true },
    {
      staticPod: 'staticPod' in runBy ? runBy.staticPod : '/etc/kubernetes/manifests/nodehub.yaml',
    },
  ]
  const found = [...other.map(flagsPath), ...hubPaths(runBy)].find(
    (path) => !own.has(path) && files.isThere(path),
  )
  if (found !== undefined) {
    throw new CannotAdopt([
      `${found} starts a hub of its own, and only one can have the ports: take it away first`,
    ])
  }
}

interface UsedCredentials {
  readonly value: Credentials
  readonly from: string
  /** Files that give the hub a certificate of its own. */
  readonly seed?: readonly { readonly path: string; readonly content: string }[]
  readonly links?: readonly { readonly path: string; readonly target: string }[]
}

/** The credentials that the hub shares with the kubelet, or is given; else why it cannot. */
function sharedCredentials(
  files: NodeFiles,
  { kubeconfig }: AdoptionSettings,
): UsedCredentials | { readonly fault: string } {
  const where: CredentialFiles =
    kubeconfig === undefined ? kubeletCredentials : { kind: 'kubeconfig', file: kubeconfig }
  const value = valid(files, where)
  if (!('fault' in value)) return { value, from: kubeconfig ?? kubeletCredentials.certificate }
  if (kubeconfig !== undefined) throw new CannotAdopt([`--kubeconfig: ${value.fault}`])
  return value
}

/** Credentials with a certificate that is valid now; else why they cannot be used. */
function valid(files: NodeFiles, where: CredentialFiles): Credentials | { readonly fault: string } {
  try {
    const credentials = readCredentials(where, (path) => files.text(path))
    const fault = certificateFault(credentials, now())
    return fault === undefined ? credentials : { fault }
  } catch (cause) {
    return { fault: messageOf(cause) }
  }
}

const nodeOf = ({ certificate }: Credentials): string | undefined =>
  certificate && /^CN=system:node:(.+)$/m.exec(new X509Certificate(certificate.chain).subject)?.[1]

/** yurthub's own pair, as the hub stores its own. Throws `CannotAdopt` where that is not usable. */
function ownOfYurthub(
  files: NodeFiles,
  yurthubRoot: string,
  rootDir: string,
  sharedFault: string,
): UsedCredentials {
  const pair = `${yurthubRoot}/pki/yurthub-current.pem`
  const ca = `${yurthubRoot}/pki/ca.crt`
  const value = valid(files, { kind: 'files', certificate: pair, key: pair, ca })
  if ('fault' in value || value.certificate === undefined) {
    const fault = 'fault' in value ? value.fault : 'it has no certificate'
    throw new CannotAdopt([
      `the hub needs a certificate of the node: the kubelet's cannot be used (${sharedFault}), nor yurthub's own (${fault}); give the hub others with --kubeconfig`,
    ])
  }
  const { certificate } = value
  const obtained = obtainedFiles(rootDir)
  const target = `${obtained.name}-0.pem`
  const key = pemOfKey(createPrivateKey(certificate.key.reveal()))
  const content = `${blocksIn(certificate.chain).join('')}${key}`
  return {
    value,
    from: pair,
    seed: [
      { path: obtained.ca, content: files.text(ca) },
      { path: `${obtained.folder}/${target}`, content },
    ],
    links: [{ path: obtained.pair, target }],
  }
}

/** The last value of a flag that is written in one word. */
const valueOf = (flags: readonly string[], name: string): string | undefined =>
  flags.findLast((flag) => flag.startsWith(`--${name}=`))?.slice(name.length + 3)

function leftAlone(files: NodeFiles, start: YurthubStart, yurthubRoot: string): readonly string[] {
  const cache = valueOf(start.flags, 'disk-cache-path') ?? '/etc/kubernetes/cache'
  const bootstrap = valueOf(start.flags, 'bootstrap-file') ?? ''
  return [yurthubRoot, cache, bootstrap, '/var/lib/openyurt/kubelet.conf']
    .map((path) => path.replace(/\/$/, ''))
    .filter((path) => path !== '' && files.isThere(path))
}

/** Notes of the configuration that repeat the reason of a flag. */
const isShown = (note: string, { flags }: MappedFlags): boolean =>
  flags.some(({ reason }) => reason !== undefined && note.endsWith(reason))

function notesOn(
  { variables }: YurthubStart,
  flags: MappedFlags,
  { hubCertSigner }: AdoptionSettings,
): readonly string[] {
  const address = valueOf(flags.more, 'dummy-if-ip') ?? '169.254.2.1'
  const ofInterface = flags.more.filter((flag) => /^--dummy-if-(?:ip|name)=/.test(flag))
  const unit = ['--unit nodehub-dummy.service', ...ofInterface].join(' ')
  return [
    ...(variables.length > 0
      ? [`variables of yurthub's environment are not passed on to the hub: ${variables.join(', ')}`]
      : []),
    ...(flags.dummyInterface
      ? [
          `pods that were led to yurthub (${address}) reach the hub there once the node has the interface, which nodehub manifests --part systemd ${unit} makes${hubCertSigner === undefined ? ', and trust it with --hub-cert-signer=kubernetes.io/kubelet-serving' : ''} (docs/ports-and-pod-access.md)`,
        ]
      : []),
  ]
}
