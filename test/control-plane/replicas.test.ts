import { once } from 'node:events'
import { connect } from 'node:tls'
import t, { type Test } from 'tap'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import { clusterOf } from '../../src/cli/cluster-command.ts'
import {
  secretData,
  stateOfSecret,
  type ServingState,
} from '../../src/cluster/serving/certificate-secret.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { valueAt, objectAt, textAt } from '../../src/api/kube/json-at.ts'
import type { ApiClient } from '../kit/cluster/api-client.ts'
import { until } from '../kit/until.ts'
import {
  administrator,
  noControlPlane,
  startControlPlane,
  type ControlPlane,
} from '../kit/control-plane.ts'
import { bodyOf } from '../cluster/admission/cluster.ts'
import { installed, startReplicas, type ReplicaSet } from './replica-set.ts'

t.setTimeout(240_000)

const skip = noControlPlane() ?? false

const pools = '/apis/apps.openyurt.io/v1beta2/nodepools'
const secret = `/api/v1/namespaces/${installed.namespace}/secrets/${installed.name}-certificates`
const lease = `/apis/coordination.k8s.io/v1/namespaces/${installed.namespace}/leases/${installed.name}`
const day = 24 * 3_600_000

void t.test(
  'two replicas run from the printed manifests, with no more rights than these grant',
  { skip, timeout: 240_000 },
  async (t) => {
    const plane = await startControlPlane(t)
    const times = ['--lease-duration=4s', '--renew-deadline=3s', '--retry-period=500ms']
    const pace = ['--workers=1']
    const set = await startReplicas(t, plane, [...times, ...pace])
    await admits(plane.admin, 'at the beginning')
    await t.test('applying a workload warns', (t) => warns(t, plane))
    await t.test('a certificate that is due is replaced, and admission answers', (t) =>
      rotation(t, plane, set),
    )
    await t.test('the leader is killed in the middle of its work', (t) => killed(t, plane, set))
    await t.test('give-back works', (t) => givenUp(t, plane, set))
  },
)

/**
 * A pool in an older version, converted, defaulted and judged; nothing is kept. Resolves to
 * 'admitted', or to what was answered.
 */
const tryPool = async (admin: ApiClient): Promise<string> => {
  const pool = {
    apiVersion: 'apps.openyurt.io/v1beta1',
    kind: 'NodePool',
    metadata: { name: 'tried' },
    spec: { hostNetwork: true },
  }
  const path = `${pools.replace('v1beta2', 'v1beta1')}?dryRun=All`
  const answer = await admin.send('POST', path, JSON.stringify(pool))
  const body = bodyOf(answer)
  const isWhole = answer.status === 201 && valueAt(body, 'spec', 'hostNetwork') === true
  return isWhole ? 'admitted' : `${answer.status}: ${textAt(body, 'message')}`
}

/** A connection that was kept to a replica which is gone fails once. */
const admits = async (admin: ApiClient, when: string): Promise<void> => {
  let said = ''
  const isAdmitted = async () => (said = await tryPool(admin)) === 'admitted'
  await until(`a pool to be admitted: ${when}`, isAdmitted, { describe: () => said })
}

const merge = (client: ApiClient, path: string, body: object) =>
  client.send('PATCH', path, JSON.stringify(body), 'application/merge-patch+json')

async function warns(t: Test, { admin }: ControlPlane): Promise<void> {
  const pool = {
    apiVersion: 'apps.openyurt.io/v1beta2',
    kind: 'NodePool',
    metadata: { name: 'kiosks' },
    spec: { hostNetwork: true },
  }
  t.equal((await admin.post(pools, pool)).status, 201)
  const container = { name: 'c', image: 'x' }
  const spec = {
    nodeSelector: { 'apps.openyurt.io/nodepool': 'kiosks' },
    containers: [container],
  }
  const template = { metadata: { labels: { app: 'shop' } }, spec }
  const workloads: Readonly<Record<string, JsonObject>> = {
    deployments: { selector: { matchLabels: { app: 'shop' } }, template },
    daemonsets: { selector: { matchLabels: { app: 'shop' } }, template },
    statefulsets: { selector: { matchLabels: { app: 'shop' } }, serviceName: 'shop', template },
    jobs: { template: { ...template, spec: { ...spec, restartPolicy: 'Never' } } },
    cronjobs: {
      schedule: '0 0 * * *',
      jobTemplate: { spec: { template: { spec: { ...spec, restartPolicy: 'Never' } } } },
    },
  }
  for (const [resource, spec] of Object.entries(workloads)) {
    const path = `/apis/${resource.endsWith('jobs') ? 'batch' : 'apps'}/v1/namespaces/default/${resource}`
    const made = { metadata: { name: 'shop' }, spec }
    const { warnings } = await until('the warning', async () => {
      const dry = await admin.post(`${path}?dryRun=All`, made)
      return dry.warnings.length > 0 && dry
    })
    t.equal((await admin.post(path, made)).status, 201)
    t.match(warnings, [/can run in kiosks alone.*\(no-pod-network\)/], resource)
    // Asked again only where what pods are made of has changed.
    const labelled = await merge(admin, `${path}/shop`, { metadata: { labels: { a: 'b' } } })
    t.strictSame([labelled.status, labelled.warnings], [200, []], `${resource}, labelled`)
  }
  const shop = '/apis/apps/v1/namespaces/default/deployments/shop?dryRun=All'
  const scaled = await until('the warning of a changed one', async () => {
    const { warnings } = await merge(admin, shop, { spec: { replicas: 2 } })
    return warnings.length > 0 && warnings
  })
  t.match(scaled, [/no-pod-network/])
  const owned = {
    metadata: {
      name: 'shop-1',
      ownerReferences: [
        { apiVersion: 'batch/v1', kind: 'CronJob', name: 'shop', uid: 'u', controller: true },
      ],
    },
    spec: workloads['jobs'],
  }
  const { status, warnings } = await admin.post('/apis/batch/v1/namespaces/default/jobs', owned)
  t.strictSame([status, warnings], [201, []], 'warnings to a controller are never read')
}

/** Certificates are made by the clock of that moment. */
async function atTime<T>(time: number, act: () => Promise<T>): Promise<T> {
  const { now } = Date
  Date.now = () => time
  try {
    return await act()
  } finally {
    Date.now = now
  }
}

async function rotation(t: Test, { admin }: ControlPlane, set: ReplicaSet): Promise<void> {
  const { replicas } = set
  const stored = async (): Promise<ServingState> =>
    stateOfSecret(objectAt(bodyOf(await admin.get(secret)), 'data') as Record<string, string>)!
  const shownBy = async (port: number): Promise<string> => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    const { raw } = socket.getPeerCertificate()
    socket.destroy()
    return raw.toString('base64')
  }
  const isShown = async ({ leaf }: ServingState): Promise<boolean> => {
    const wanted = leaf.certificate.replaceAll(/-----[^-]+-----|\s/g, '')
    const shown = await Promise.all(replicas.map(({ webhookPort }) => shownBy(webhookPort)))
    return shown.every((each) => each === wanted)
  }
  // As 0.2.0 has left it: a certificate that ends, and is due.
  const dnsNames = [`${installed.name}.${installed.namespace}.svc`]
  const late = await atTime(Date.now() - 61 * day, async () => {
    const authority = await CertificateAuthority.create('nodehub-cluster-ca', 5 * 365 * day)
    const lifetimeMs = 90 * day
    const leaf = await authority.issue({
      commonName: 'late',
      usage: 'server',
      dnsNames,
      lifetimeMs,
    })
    return { bundle: [authority.certificate], leaf }
  })
  t.equal((await merge(admin, secret, { data: secretData(late) })).status, 200)
  const taken = await until('the certificate to be renewed', async () => {
    const state = await stored()
    const isRenewed = state.leaf.certificate !== late.leaf.certificate
    return isRenewed && state.bundle.includes(late.bundle[0] ?? '') ? state : undefined
  })
  await until('every replica to show its certificate', () => isShown(taken))
  await admits(admin, 'under it')
  // API servers keep their connections: over new ones they look at the certificate again.
  set.cut()
  await admits(admin, 'over new connections')

  // Somebody deletes the Secret: nobody vouches for what is made anew until the leader has written
  // so.
  t.equal((await admin.send('DELETE', secret)).status, 200)
  await until('admission to be back', async () => {
    const state = await stored()
    return state.leaf.certificate !== taken.leaf.certificate && (await isShown(state))
  })
  await admits(admin, 'without the Secret')
}

async function killed(t: Test, { admin }: ControlPlane, set: ReplicaSet): Promise<void> {
  const count = 400
  const labels = { 'apps.openyurt.io/nodepool': 'kiosks' }
  const names = Array.from({ length: count }, (_, i) => `kiosk-${i}`)
  const node = (name: string) => ({ kind: 'Node', apiVersion: 'v1', metadata: { name, labels } })
  for (const name of names) await admin.post('/api/v1/nodes', node(name))
  const labelled = async (key: string): Promise<number> =>
    (await admin.get(`/api/v1/nodes?labelSelector=${key}`)).json().items?.length ?? 0
  t.equal(await labelled('nodepool.openyurt.io/hostnetwork=true'), count)

  const holder = async (): Promise<JsonObject> => objectAt(bodyOf(await admin.get(lease)), 'spec')
  const leader = await until('a leader', () => set.leader())
  const before = await holder()
  await merge(admin, `${pools}/kiosks`, { spec: { labels: { round: 'first' } } })
  await until('some nodes to be changed', async () => (await labelled('round=first')) > 10)
  await leader.daemon.kill()
  const done = await labelled('round=first')
  t.ok(done < count, `it was in the middle: ${done}`)

  await admits(admin, 'without a leader')
  await until('all nodes to be changed', async () => (await labelled('round=first')) === count)
  const after = await holder()
  t.not(after['holderIdentity'], before['holderIdentity'])
  t.equal(after['leaseTransitions'], Number(before['leaseTransitions'] ?? 0) + 1)

  const next = await until('a leader', () => set.leader())
  t.not(next, leader)
  await leader.daemon.start()
  t.equal(await leader.metric('nodehub_cluster_leading'), 0, 'the one that is back follows')

  // Whoever writes the Lease has it: the one that led writes nothing more until it is free again.
  const stolen = { holderIdentity: 'another-holder', leaseDurationSeconds: 3600 }
  const renewTime = `${new Date().toISOString().slice(0, -1)}000Z`
  await merge(admin, lease, { spec: { ...stolen, renewTime } })
  await until('no replica to lead', async () => (await set.leader()) === undefined)
  await merge(admin, `${pools}/kiosks`, { spec: { labels: { round: 'second' } } })
  await admits(admin, 'while another holder has the Lease')
  t.equal(await labelled('round=second'), 0)
  await merge(admin, lease, { spec: { holderIdentity: '' } })
  await until('all nodes to be changed', async () => (await labelled('round=second')) === count)
}

async function givenUp(t: Test, plane: ControlPlane, { replicas }: ReplicaSet): Promise<void> {
  const { admin } = plane
  for (const { daemon } of replicas) await daemon.stop()
  const flags = [`--kubeconfig=${plane.kubeconfig(administrator)}`, '--namespace=nodehub-system']
  const givingBack = async () => {
    const said = { out: '', err: '' }
    const code = await clusterOf(['give-back']).run(['give-back', ...flags], {
      out: (text) => (said.out += text),
      err: (text) => (said.err += text),
    })
    return { code, ...said }
  }
  const names = ['mutating', 'validating'].map((kind) => `${kind}webhookconfiguration`)
  t.match(await givingBack(), {
    code: 1,
    err: `kubectl delete ${names.map((name) => `${name}/nodehub-cluster`).join(' ')}, and run this again then`,
  })
  for (const name of names)
    await admin.send('DELETE', `/apis/admissionregistration.k8s.io/v1/${name}s/nodehub-cluster`)
  const given = await until('pools to be written without them', async () => {
    const said = await givingBack()
    return said.code === 0 && said
  })
  t.match(given.out, 'rolled back: finalizer of NodePool kiosks')
  t.equal(valueAt(bodyOf(await admin.get(`${pools}/kiosks`)), 'metadata', 'finalizers'), undefined)
}
