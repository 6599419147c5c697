/**
 * Who is given what: callers by what they show, at each listener, online and offline. A cell tells
 * two answers: to a get of a Secret that the kubelet has read, and of a ConfigMap that a service
 * account has read.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { CertificateAuthority, type CertificateRequest } from '../../src/certificates/authority.ts'
import type { Attributes } from '../../src/sandbox/authentication.ts'
import { configMaps, nodeName, secrets, startCloud, type CloudServer } from '../kit/cloud.ts'
import { startOnlineHub, goOffline, type TestHub } from '../kit/hub.ts'
import { requestAs, type RequestAs } from '../kit/other-user.ts'
import { rootFolder } from '../kit/root-folder.ts'

t.setTimeout(300_000)

const skip =
  process.platform !== 'linux' || process.getuid?.() !== 0 ? 'only root can be two users' : false

const root = 0
const another = 65_534

const secret = '/api/v1/namespaces/default/secrets/of-the-node'
const configMap = '/api/v1/namespaces/default/configmaps/of-the-reader'
const plaintext = Buffer.from('for the kubelet alone').toString('base64')

const cluster = await CertificateAuthority.create('cluster')
const elsewhere = await CertificateAuthority.create('cluster')

const kubelet: CertificateRequest = {
  commonName: `system:node:${nodeName}`,
  organizations: ['system:nodes'],
  usage: 'client',
}

/** What a caller shows. */
interface Credentials {
  readonly certificate?: { readonly certificate: string; readonly key: string }
  readonly headers?: Readonly<Record<string, string>>
}

const bearer = (token: string): Credentials => ({ headers: { Authorization: `Bearer ${token}` } })

const certificates = {
  node: { certificate: await cluster.issue(kubelet) },
  otherNode: { certificate: await cluster.issue({ ...kubelet, commonName: 'system:node:edge-2' }) },
  nodeWithoutGroup: { certificate: await cluster.issue({ ...kubelet, organizations: [] }) },
  admin: {
    certificate: await cluster.issue({
      ...kubelet,
      commonName: 'admin',
      organizations: ['system:masters'],
    }),
  },
  foreign: { certificate: await elsewhere.issue(kubelet) },
  expired: { certificate: await cluster.issue({ ...kubelet, lifetimeMs: -1_000 }) },
  serving: { certificate: await cluster.issue({ ...kubelet, usage: 'server' }) },
} satisfies Record<string, Credentials>

/**
 * The cloud lets the node read the Secret, the service account the ConfigMap, and all accounts the
 * cluster's keys.
 */
function mayRead({ user, resource, path }: Attributes): boolean {
  if (user.name.startsWith('system:serviceaccount:'))
    return resource === 'configmaps' || /openid/.test(path)
  return user.name === `system:node:${nodeName}` && resource !== 'configmaps'
}

async function startAll(
  t: Test,
  ...flags: string[]
): Promise<{ cloud: CloudServer; hub: TestHub }> {
  const cloud = await startCloud(t, { tls: true, authorizer: mayRead })
  const namespace = 'default'
  cloud.sandbox.create(secrets, {
    metadata: { name: 'of-the-node', namespace },
    data: { key: plaintext },
  })
  cloud.sandbox.create(configMaps, { metadata: { name: 'of-the-reader', namespace } })
  cloud.sandbox.create(
    { group: '', version: 'v1', resource: 'serviceaccounts' },
    { metadata: { name: 'reader', namespace } },
  )
  const clientCa = join(rootFolder(t), 'client-ca.crt')
  writeFileSync(clientCa, cluster.certificate)
  const hub = await startOnlineHub(t, {
    upstreams: [cloud],
    flags: ['--anonymous-loopback=root', `--client-ca=${clientCa}`, ...flags],
  })
  return { cloud, hub }
}

/** Where a caller calls, and whose process it is. */
type Place = 'TLS' | 'plain as root' | 'plain as another'

const places: readonly Place[] = ['TLS', 'plain as root', 'plain as another']

/**
 * The cells of each place, a caller after the other. One process of a user asks for all of them.
 */
async function cellsOf(
  hub: TestHub,
  callers: readonly Credentials[],
): Promise<Readonly<Record<Place, readonly string[]>>> {
  const asked = (url: string): RequestAs[] =>
    callers.flatMap(({ certificate, headers = {} }) =>
      [secret, configMap].map((path) => ({
        url: `${url}${path}`,
        headers: { 'User-Agent': 'kubelet/v1.35.0', Accept: 'application/json', ...headers },
        ca: hub.ca,
        ...(certificate && { cert: certificate.certificate, key: certificate.key }),
      })),
    )
  const cells = async (uid: number, url: string): Promise<string[]> => {
    const answers = await requestAs(uid, asked(url))
    const said = answers.map(({ status, body }, i) =>
      body.includes(plaintext) === (i % 2 === 0 && status === 200)
        ? String(status)
        : `${status} with the wrong body`,
    )
    return callers.map((_, i) => said.slice(2 * i, 2 * i + 2).join(' '))
  }
  const [asRoot, asAnother, plainRoot, plainAnother] = await Promise.all([
    cells(root, hub.secureUrl),
    cells(another, hub.secureUrl),
    cells(root, hub.url),
    cells(another, hub.url),
  ])
  return {
    TLS: asRoot.map((cell, i) =>
      cell === asAnother[i] ? cell : `${cell} as root, ${asAnother[i]} as another`,
    ),
    'plain as root': plainRoot,
    'plain as another': plainAnother,
  }
}

/**
 * What each caller is given: at TLS, at the plain port as root and as another user; first online,
 * then offline.
 */
type Row = readonly [who: string, shown: Credentials, online: Cells, offline: Cells]
type Cells = readonly [tls: string, plainAsRoot: string, plainAsAnother: string]

async function check(
  t: Test,
  hub: TestHub,
  rows: readonly Row[],
  when: 'online' | 'offline',
): Promise<void> {
  const cells = await cellsOf(
    hub,
    rows.map(([, shown]) => shown),
  )
  for (const [row, [who, , online, offline]] of rows.entries()) {
    const expected = when === 'online' ? online : offline
    for (const [column, place] of places.entries())
      t.equal(cells[place][row], expected[column], `${who}, ${place}, ${when}`)
  }
}

/** What the plain port gives root, TLS gives offline to who shows nothing. */
const onlyRoots = '200 503 as root, 401 401 as another'

const nobody: Cells = ['401 401', '401 401', '401 401']

interface Tokens {
  readonly accepted: string
  readonly rotated: string
  readonly ended: string
  readonly opaque: string
  readonly neverSeen: string
}

/** Rows of a node whose plain port is served, to whom a certificate is nothing. */
function servedRows({ accepted, ended, opaque }: Tokens): readonly Row[] {
  const asNode: Cells = ['200 403', '200 403', '401 401']
  const asNodeOffline: Cells = ['200 503', '200 503', '401 401']
  const asReader: Cells = ['403 200', '403 200', '403 200']
  const asReaderOffline: Cells = ['503 200', '503 200', '503 200']
  const another: Cells = ['403 403', '200 403', '401 401']
  const anotherOffline: Cells = ['403 403', '200 503', '401 401']
  const none: Cells = ['401 401', '200 403', '401 401']
  const noneOffline: Cells = ['401 401', '200 503', '401 401']
  const silentOffline: Cells = [onlyRoots, '200 503', '401 401']
  const { node, otherNode, nodeWithoutGroup, admin, foreign, expired, serving } = certificates
  const impersonating = { 'Impersonate-User': 'admin', 'Impersonate-Group': 'system:masters' }
  const frontProxy = { 'X-Remote-User': 'admin', 'X-Remote-Group': 'system:masters' }
  return [
    ['nobody', {}, none, silentOffline],
    ['the kubelet', node, asNode, asNodeOffline],
    ["another node's kubelet", otherNode, another, anotherOffline],
    ['who is called like the node', nodeWithoutGroup, another, anotherOffline],
    ['an administrator by certificate', admin, another, anotherOffline],
    ["another cluster's kubelet of that name", foreign, none, noneOffline],
    ['the kubelet with a certificate that has ended', expired, none, noneOffline],
    ["the kubelet's serving certificate", serving, none, noneOffline],
    ['a service account', bearer(accepted), asReader, asReaderOffline],
    ['a token that has ended', bearer(ended), nobody, nobody],
    ['a token that was never issued', bearer('nonsense'), nobody, nobody],
    ['a forged one', bearer(forged(accepted)), nobody, nobody],
    [
      'an opaque token, of a user without permissions',
      bearer(opaque),
      ['403 403', '403 403', '403 403'],
      ['503 503', '503 503', '503 503'],
    ],
    ['no token at all, but a word', { headers: { Authorization: 'Basic eDp5' } }, nobody, nobody],
    [
      'the kubelet with a token besides',
      { ...node, ...bearer(accepted) },
      ['200 403', '403 200', '403 200'],
      ['200 503', '503 200', '503 200'],
    ],
    [
      "another node's kubelet with a token besides",
      { ...otherNode, ...bearer(accepted) },
      ['403 403', '403 200', '403 200'],
      ['403 403', '503 200', '503 200'],
    ],
    [
      "another cluster's kubelet with a token besides",
      { ...foreign, ...bearer(accepted) },
      asReader,
      asReaderOffline,
    ],
    [
      'the kubelet speaking for another',
      { ...node, headers: impersonating },
      ['403 403', '403 403', '401 401'],
      ['403 403', '403 403', '401 401'],
    ],
    ['who says whom a front proxy knows', { headers: frontProxy }, none, silentOffline],
    [
      'a service account that says so',
      { headers: { ...frontProxy, ...bearer(accepted).headers } },
      asReader,
      asReaderOffline,
    ],
  ]
}

/** The claims of another account, under the signature of this token. */
function forged(token: string): string {
  const [head, claims = '', signature] = token.split('.')
  const other = Buffer.from(claims, 'base64url').toString().replaceAll('reader', 'writer')
  return [head, Buffer.from(other).toString('base64url'), signature].join('.')
}

async function issued(cloud: CloudServer): Promise<Tokens> {
  const [accepted, rotated] = await Promise.all([cloud.readerToken(), cloud.readerToken(7200)])
  return {
    accepted,
    rotated,
    ended: await cloud.readerToken(-60),
    opaque: cloud.sandbox.token('somebody'),
    neverSeen: cloud.sandbox.token('another user'),
  }
}

/** What was used only offline. */
const offlineRows = ({ rotated, neverSeen }: Tokens): readonly Row[] => [
  ["a service account's next token", bearer(rotated), nobody, ['503 200', '503 200', '503 200']],
  ['a token that says nothing and was never accepted', bearer(neverSeen), nobody, nobody],
]

const keysKnown = (hub: TestHub): Promise<void> =>
  hub.logged('the keys of service accounts are known')

void t.test(
  'F26: each caller is given what is its own, on a standard node',
  { skip },
  async (t) => {
    const { cloud, hub } = await startAll(t)
    const tokens = await issued(cloud)
    const rows = servedRows(tokens)
    await check(t, hub, rows, 'online')
    await keysKnown(hub)
    await goOffline(cloud, hub)
    await check(t, hub, [...rows, ...offlineRows(tokens)], 'offline')
    await hub.restart()
    await hub.offline()
    await check(t, hub, [...rows, ...offlineRows(tokens)], 'offline')
  },
)

void t.test(
  'F26: on a host-network node the plain port refuses every caller, and TLS is the same as elsewhere',
  { skip },
  async (t) => {
    const { cloud, hub } = await startAll(t, '--host-network-node')
    const tokens = await issued(cloud)
    const closed = ([tls]: Cells): Cells => [
      tls === onlyRoots ? '401 401' : tls,
      '401 401',
      '401 401',
    ]
    const rows = servedRows(tokens).map(([who, shown, on, off]): Row => [
      who,
      shown,
      closed(on),
      closed(off),
    ])
    await check(t, hub, rows, 'online')
    await keysKnown(hub)
    await goOffline(cloud, hub)
    await check(t, hub, rows, 'offline')
  },
)

void t.test(
  'F26: on a host-network node --plain-proxy makes the plain port as on a standard one',
  { skip },
  async (t) => {
    const { cloud, hub } = await startAll(t, '--host-network-node', '--plain-proxy')
    const rows = servedRows(await issued(cloud))
    await check(t, hub, rows, 'online')
    await goOffline(cloud, hub)
    await check(t, hub, rows, 'offline')
  },
)

void t.test(
  'F26: a pod on loopback gets nothing of the kubelet’s, whatever it says it is',
  { skip },
  async (t) => {
    const { cloud, hub } = await startAll(t)
    await hub.as('kubelet').get(secret)
    const says = {
      'User-Agent': 'kubelet/v1.35.0',
      'X-Remote-User': kubelet.commonName,
      'X-Remote-Group': 'system:nodes',
      'X-Forwarded-For': '127.0.0.1',
      'Impersonate-User': kubelet.commonName,
    }
    const ask = () => cellsOf(hub, [{ headers: says }])
    t.match(await ask(), { TLS: ['401 401'], 'plain as another': ['401 401'] })
    await goOffline(cloud, hub)
    t.match(await ask(), { TLS: ['401 401'], 'plain as another': ['401 401'] })
  },
)
