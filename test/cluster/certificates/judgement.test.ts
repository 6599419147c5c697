import t from 'tap'
import {
  newKey,
  signingRequest,
  type RequestedSubject,
} from '../../../src/certificates/signing-request.ts'
import { judge, type CertificateRequestFacts } from '../../../src/cluster/certificates/judgement.ts'
import type { NodeFacts } from '../../../src/cluster/controller/node-facts.ts'
import { readClusterConfig } from '../../../src/config/cluster-config.ts'

const node = (name: string, ...addresses: readonly string[]): [string, NodeFacts] => [
  name,
  {
    name,
    uid: name,
    resourceVersion: '1',
    labels: {},
    annotations: {},
    taints: [],
    ready: true,
    addresses,
  },
]

const nodes = new Map([
  node('edge-1', '10.0.0.1', 'fd00:1::1', '10.0.0.99', '10.0.0.200', 'fd00:2::1'),
  node('edge-2', '10.0.0.2', '10.0.0.99'),
])

function rulesBy(...argv: readonly string[]) {
  const readFile = (): string => ''
  const result = readClusterConfig({ argv: ['--kubeconfig=k', ...argv], env: {}, readFile })
  if ('mistakes' in result) throw new Error(result.mistakes.join('\n'))
  return result.config.hubCertificates
}

const right: RequestedSubject = {
  commonName: 'system:node:edge-1',
  organizations: ['system:nodes'],
  dnsNames: ['kubernetes', 'kubernetes.default.svc.cluster.local', 'localhost'],
  ipAddresses: ['169.254.2.1', '127.0.0.1', '::1'],
}

interface Changes extends Partial<CertificateRequestFacts> {
  readonly subject?: Partial<RequestedSubject>
}

async function judged(
  { subject, ...facts }: Changes,
  rules = rulesBy(),
  serviceAddresses = (): Promise<readonly string[]> => Promise.resolve(['10.96.0.1', 'fd00:10::1']),
): Promise<unknown> {
  const request = await signingRequest(newKey(), { ...right, ...subject })
  const asked = {
    username: 'system:node:edge-1',
    groups: ['system:nodes', 'system:authenticated'],
    usages: ['digital signature', 'server auth'],
    request,
    ...facts,
  }
  const judgement = await judge(asked, rules, nodes, serviceAddresses)
  return judgement?.verdict === 'denied' ? judgement.why : judgement?.verdict
}

void t.test('a node’s request for its own hub is approved', async (t) => {
  t.equal(await judged({}), 'approved')
  const usages = ['key encipherment', 'server auth', 'digital signature']
  t.equal(await judged({ usages }), 'approved')
  t.equal(await judged({ subject: { dnsNames: [] } }), 'approved')
})

void t.test('other CSRs are denied with a reason', async (t) => {
  const of = (subject: Partial<RequestedSubject>): Changes => ({ subject })
  const cases: readonly (readonly [Changes, string])[] = [
    [{ username: 'admin', groups: ['system:masters'] }, 'who made it is no node'],
    [{ groups: ['system:authenticated'] }, 'who made it is no node'],
    [{ username: 'system:bootstrap:abcdef' }, 'who made it is no node'],
    [{ username: 'system:node:edge-2' }, 'it is not for the node that made it'],
    [of({ commonName: 'system:node:edge-2' }), 'it is not for the node that made it'],
    [of({ commonName: 'admin' }), 'it is not for the node that made it'],
    [of({ organizations: [] }), 'it is not of the organization system:nodes'],
    [
      of({ organizations: ['system:nodes', 'system:masters'] }),
      'the organization "system:masters" is not allowed',
    ],
    [of({ organizations: ['a'] }), 'the organization "a" is not allowed'],
    [of({ dnsNames: ['edge-1'] }), 'the name "edge-1" is not allowed'],
    [of({ dnsNames: ['kubernetes.default.svc.example'] }), 'the name'],
    [of({ dnsNames: ['*'] }), 'the name "*" is not allowed'],
    [of({ ipAddresses: ['10.0.0.2'] }), '10.0.0.2 is no address of the node'],
    [of({ ipAddresses: ['::ffff:10.0.0.1'] }), 'is no address of the node'],
    [of({ dnsNames: [], ipAddresses: [] }), 'it is for no name and no address'],
    [{ usages: ['digital signature', 'client auth'] }, 'its usages are not'],
    [{ usages: ['digital signature', 'server auth', 'client auth'] }, 'its usages are not'],
    [{ usages: ['server auth'] }, 'its usages are not'],
    [{ usages: [] }, 'its usages are not'],
    [{ request: 'a' }, 'the request is no request in PEM'],
  ]
  for (const [changes, why] of cases) t.match(await judged(changes), why, why)
})

void t.test('a node’s own addresses are approved in the given networks only', async (t) => {
  const rules = rulesBy('--hub-cert-node-cidrs=10.0.0.0/25,fd00:1::/64')
  const asked = (...ipAddresses: readonly string[]) => judged({ subject: { ipAddresses } }, rules)
  t.equal(await asked('169.254.2.1', '10.0.0.1', 'fd00:1:0::1'), 'approved')
  t.equal(
    await asked('10.0.0.200'),
    '10.0.0.200 is in no network of --hub-cert-node-cidrs',
    'a node can claim the address of an API server',
  )
  t.equal(await asked('fd00:2::1'), 'fd00:2::1 is in no network of --hub-cert-node-cidrs')
  t.equal(await asked('10.0.0.2'), '10.0.0.2 is no address of the node')
  t.equal(await asked('10.0.0.99'), '10.0.0.99 is an address of the node edge-2, too')
  t.match(await judged({ subject: { ipAddresses: ['10.0.0.1'] } }), /is in no network/, 'default')
})

void t.test('the ClusterIPs of default/kubernetes are approved', async (t) => {
  const asked = (...ipAddresses: readonly string[]) => ({ subject: { ipAddresses } })
  t.equal(await judged(asked('169.254.2.1', '10.96.0.1', 'FD00:10:0::1')), 'approved')
  t.match(await judged(asked('10.96.0.2')), '10.96.0.2 is no address of the node')
  const unread = () => Promise.reject(new Error('not read'))
  await t.rejects(judged(asked('10.96.0.1'), rulesBy(), unread), { message: 'not read' })
  t.equal(await judged(asked('169.254.2.1'), rulesBy(), unread), 'approved', 'where it needs none')
})

void t.test('a node that has not registered is waited for', async (t) => {
  const username = 'system:node:edge-3'
  t.equal(await judged({ username, subject: { commonName: username } }), undefined)
})

void t.test('flags allow other organizations, names and addresses', async (t) => {
  const rules = rulesBy(
    '--hub-cert-organizations=openyurt:tenant:a',
    '--hub-cert-names=hub.example',
    '--hub-cert-addresses=169.254.2.9,FD00::9',
  )
  const organizations = ['system:nodes', 'openyurt:tenant:a']
  const subject = { organizations, dnsNames: ['hub.example'], ipAddresses: ['fd00::9'] }
  t.equal(await judged({ subject }, rules), 'approved')
  t.equal(await judged({}, rules), 'the name "kubernetes" is not allowed')
})

void t.test('no flag allows a group of Kubernetes itself', async (t) => {
  t.throws(() => rulesBy('--hub-cert-organizations=system:masters'), /is a group of Kubernetes/)
  t.throws(() => rulesBy('--hub-cert-signers=a b'), /is not the name of a signer/)
})
