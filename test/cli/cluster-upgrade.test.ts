import t, { type Test } from 'tap'
import { upgradeFleet } from '../../src/cli/cluster-upgrade.ts'
import { ownVersion } from '../../src/base/own-version.ts'
import {
  hubReportPatch,
  installReportPatch,
  type InstallReport,
} from '../../src/api/kube/hub-report.ts'
import type { GVR } from '../../src/api/kube/gvk.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { listAt, objectAt, textAt, valueAt, withAt } from '../../src/api/kube/json-at.ts'
import { nodeAdopters, nodeInstallers } from '../../src/cluster/install/nodes.ts'
import { schemaOfRelease } from '../../src/cluster/upgrade/plan.ts'
import type { UpgradeConfig } from '../../src/config/cluster-config.ts'
import { newestSchema } from '../../src/hub/store/sqlite/schema.ts'
import { nodes, pods } from '../kit/cloud.ts'
import { startTestCluster, type TestCluster } from '../kit/cluster-api.ts'

t.setTimeout(300_000)

const daemonSets: GVR = { group: 'apps', version: 'v1', resource: 'daemonsets' }
const namespace = 'kube-system'

interface Fleet extends TestCluster {
  /** What a node's hub makes of an image; by default it runs. */
  behaviour: (
    node: string,
    image: string,
  ) => 'runs' | 'refuses' | 'does not start' | 'rejects clients'
  /** Called before a node gets an installer. */
  onReplace: (node: string) => void
  imageOf(node: string): string
  /** As its installer writes it. */
  report(node: string, report: InstallReport): void
  upgrade(
    image: string,
    more?: Partial<UpgradeConfig>,
  ): Promise<{ code: number; out: string; err: string }>
  annotations(node: string): JsonObject
}

/** A cluster with nodes of 0.1.0, whose DaemonSet's controller and kubelets are simulated. */
async function startFleet(
  t: Test,
  names: readonly string[],
  schema = newestSchema,
  wanted: 'install' | 'adopt' = 'install',
): Promise<Fleet> {
  const cluster = await startTestCluster(t)
  const { sandbox } = cluster
  const [installer] = JSON.parse(
    JSON.stringify(
      (wanted === 'adopt' ? nodeAdopters : nodeInstallers)({ namespace, image: 'hub:0.1.0' }),
    ),
  ) as JsonObject[]
  sandbox.create(daemonSets, installer!)
  const name = `nodehub-${wanted}`
  let starts = 0
  const fleet: Fleet = {
    ...cluster,
    behaviour: () => 'runs',
    onReplace: () => undefined,
    report: (node, report) => annotate(node, installReportPatch(report)),
    imageOf: (node) => imageIn(sandbox.get(pods, `install-${node}`, namespace)),
    annotations: (node) => objectAt(sandbox.get(nodes, node) ?? null, 'metadata', 'annotations'),
    async upgrade(image, more = {}) {
      let [out, err] = ['', '']
      const config: UpgradeConfig = {
        access: { kind: 'kubeconfig', file: cluster.kubeconfig },
        namespace,
        qps: 1000,
        burst: 1000,
        image,
        version: image.split(':')[1] ?? '',
        daemonSet: `${namespace}/${name}`,
        waves: [{ nodes: 1 }],
        waveLabel: undefined,
        nodes: [],
        maxUnavailable: { percent: 100 },
        gateMs: 60_000,
        soakMs: 0,
        rollback: true,
        replace: false,
        dryRun: false,
        ...more,
      }
      const terminal = {
        out: (said: string) => void (out += said),
        err: (said: string) => void (err += said),
      }
      return { code: await upgradeFleet(cluster.api, config, terminal), out, err }
    },
  }
  const annotate = (node: string, patch: JsonObject): void => {
    const found = sandbox.get(nodes, node) ?? {}
    const annotations = {
      ...objectAt(found, 'metadata', 'annotations'),
      ...objectAt(patch, 'metadata', 'annotations'),
    }
    sandbox.update(nodes, withAt(found, ['metadata', 'annotations'], annotations))
  }
  const install = (node: string): void => {
    const template = objectAt(sandbox.get(daemonSets, name, namespace) ?? null, 'spec', 'template')
    const spec = { ...objectAt(template, 'spec'), nodeName: node }
    const labels = objectAt(template, 'metadata', 'labels')
    const pod = sandbox.create(pods, {
      metadata: { name: `install-${node}`, namespace, labels },
      spec,
    })
    const image = imageIn(pod)
    const version = image.split(':')[1] ?? ''
    const does = fleet.behaviour(node, image)
    const state = does === 'refuses' ? 'Refused' : 'Installed'
    const patches = [
      installReportPatch({ state, image, version, ...(does === 'refuses' && { message: 'no' }) }),
      ...(does === 'runs' || does === 'rejects clients'
        ? [
            hubReportPatch({
              version,
              schema,
              started: `start ${++starts}`,
              failing: [],
              refused: does === 'runs' ? [] : ['401 kubelet'],
            }),
          ]
        : []),
    ]
    for (const patch of patches) annotate(node, patch)
  }
  for (const node of names) {
    const made = sandbox.create(nodes, {
      metadata: { name: node, labels: { 'nodehub.io/hub': wanted } },
    })
    setReady(fleet, textAt(made, 'metadata', 'name'), 'True')
    install(node)
  }
  let isOver = false
  t.teardown(() => (isOver = true))
  const control = async (): Promise<void> => {
    while (!isOver) {
      const { path, over } = await sandbox.nextRequest(
        (each) => each.method === 'DELETE' && each.path.includes('/pods/install-'),
      )
      if (!over.aborted) await new Promise((resolve) => (over.onabort = resolve))
      const node = /install-([\w-]+)/.exec(path)?.[1] ?? ''
      // As its kubelet ends it.
      sandbox.delete(pods, `install-${node}`, namespace, { gracePeriodSeconds: 0 })
      fleet.onReplace(node)
      for (const each of names)
        if (sandbox.get(pods, `install-${each}`, namespace) === undefined) install(each)
    }
  }
  void control().catch(() => undefined)
  return fleet
}

const imageIn = (pod: JsonObject | undefined): string =>
  textAt(listAt(pod ?? null, 'spec', 'initContainers')[0] ?? null, 'image')

function setReady({ sandbox }: TestCluster, node: string, status: string): void {
  const conditions = [
    { type: 'Ready', status },
    { type: 'OfflineReady', status: 'True', message: 'all is kept' },
  ]
  sandbox.update(nodes, { ...sandbox.get(nodes, node), status: { conditions } }, 'status')
}

const images = (fleet: Fleet, ...names: string[]): string[] =>
  names.map((each) => fleet.imageOf(each))

void t.test(
  'a fleet is upgraded wave by wave, and nodes without a link are left and named',
  async (t) => {
    const fleet = await startFleet(t, ['a', 'b', 'c', 'd'])
    setReady(fleet, 'c', 'Unknown')
    const order: string[] = []
    fleet.onReplace = (node) => order.push(node)
    const planned = await fleet.upgrade('hub:0.2.0', { dryRun: true })
    t.match(planned, { code: 1, out: /wave 1: 1 \(a\)\nwave 2: 2 \(b, d\)\nlater: c is not Ready/ })
    t.strictSame(order, [], 'a dry run changes nothing')
    const done = await fleet.upgrade('hub:0.2.0')
    t.match(done, {
      code: 1,
      out: /wave 2 of 2: b, d\n {2}passed\nleft for later: c; run it again/,
    })
    t.equal(order[0], 'a')
    t.strictSame(images(fleet, 'a', 'b', 'c', 'd'), [
      'hub:0.2.0',
      'hub:0.2.0',
      'hub:0.1.0',
      'hub:0.2.0',
    ])
    t.equal(fleet.annotations('a')['nodehub.io/before-upgrade'], undefined)
    setReady(fleet, 'c', 'True')
    t.match(await fleet.upgrade('hub:0.2.0'), { code: 0, out: /all nodes have hub:0.2.0/ })
    t.match(await fleet.upgrade('hub:0.2.0'), { code: 0, out: /done: 4 \(a, b, c, d\)/ })
  },
)

void t.test('adopted nodes are upgraded by the same gate, and others are left', async (t) => {
  const fleet = await startFleet(t, ['a', 'b', 'c', 'd'], newestSchema, 'adopt')
  fleet.report('c', { state: 'Refused', image: 'hub:0.1.0', version: '0.1.0', message: 'no' })
  fleet.report('d', { state: 'Installed', image: '', version: '0.1.0' })
  const said = await fleet.upgrade('hub:0.2.0')
  t.match(said, {
    code: 1,
    out: /later: c has not been adopted: .*\nlater: d has a hub of systemd: .*passed.*left for later: c, d/s,
  })
  t.strictSame(images(fleet, 'a', 'b', 'c', 'd'), [
    'hub:0.2.0',
    'hub:0.2.0',
    'hub:0.1.0',
    'hub:0.1.0',
  ])
})

for (const [does, why] of [
  ['refuses', 'its installer refused: no'],
  ['does not start', 'its hub reports 0.1.0, and not 0.2.0'],
  ['rejects clients', 'its hub refuses requests that it accepted before: 401 kubelet'],
] as const) {
  void t.test(`a wave in which a hub ${does} is rolled back, and is the last`, async (t) => {
    const fleet = await startFleet(t, ['a', 'b', 'c', 'd'])
    fleet.behaviour = (node, image) => (node === 'b' && image === 'hub:0.2.0' ? does : 'runs')
    const order: string[] = []
    fleet.onReplace = (node) => order.push(node)
    const waves = [{ nodes: 1 }, { nodes: 3 }]
    const said = await fleet.upgrade('hub:0.2.0', { waves, gateMs: 2_000 })
    t.match(said, { code: 1, out: `failed: b: ${why}` })
    t.match(said.out, 'taken back: its nodes run what they ran before')
    t.strictSame(images(fleet, 'a', 'b', 'c', 'd'), [
      'hub:0.2.0',
      'hub:0.1.0',
      'hub:0.1.0',
      'hub:0.1.0',
    ])
    t.notOk(order.includes('d'))
    t.equal(fleet.annotations('b')['nodehub.io/before-upgrade'], undefined)
  })
}

void t.test('an upgrade that was killed at any write goes on in the next run', async (t) => {
  for (let at = 1; ; at++) {
    const fleet = await startFleet(t, ['a', 'b'])
    let writes = 0
    const { api } = fleet
    const call = api.send.bind(api)
    api.send = (request) => {
      if (request.method !== 'GET' && ++writes >= at) return Promise.reject(new Error('killed'))
      return call(request)
    }
    const killed = await fleet.upgrade('hub:0.2.0').catch(() => undefined)
    api.send = call
    if (killed) break
    const where = `killed at write ${at}`
    t.match(await fleet.upgrade('hub:0.2.0'), { code: 0 }, where)
    t.strictSame(images(fleet, 'a', 'b'), ['hub:0.2.0', 'hub:0.2.0'], where)
    for (const node of ['a', 'b'])
      t.equal(fleet.annotations(node)['nodehub.io/before-upgrade'], undefined, where)
  }
})

/** Has `act` run before each write of the DaemonSet reaches the API server. */
function beforeWrites({ api }: Fleet, act: (nth: number) => void): void {
  const call = api.send.bind(api)
  let writes = 0
  api.send = (request) => {
    if (request.method === 'PATCH' && request.path.includes('/daemonsets/')) act(++writes)
    return call(request)
  }
}

void t.test('what a controller writes to the DaemonSet does not end an upgrade', async (t) => {
  const fleet = await startFleet(t, ['a', 'b'])
  const tries: number[] = []
  beforeWrites(fleet, (nth) => {
    tries.push(nth)
    if (nth % 2 === 0) return
    const found = fleet.sandbox.get(daemonSets, 'nodehub-install', namespace) ?? {}
    const annotations = { ...objectAt(found, 'metadata', 'annotations'), seen: String(nth) }
    fleet.sandbox.update(daemonSets, withAt(found, ['metadata', 'annotations'], annotations))
  })
  t.match(await fleet.upgrade('hub:0.2.0'), { code: 0 })
  t.strictSame(images(fleet, 'a', 'b'), ['hub:0.2.0', 'hub:0.2.0'])
  t.ok(tries.length >= 4, 'each of its states was written again')
})

void t.test('an upgrade whose state another one replaces stops', async (t) => {
  const fleet = await startFleet(t, ['a', 'b'])
  beforeWrites(fleet, (nth) => {
    if (nth > 1) return
    const found = fleet.sandbox.get(daemonSets, 'nodehub-install', namespace) ?? {}
    const state = { run: 'other', image: 'hub:0.3.0', from: 'hub:0.1.0', phase: 'upgrading' }
    const annotations = { 'nodehub.io/upgrade': JSON.stringify(state) }
    fleet.sandbox.update(daemonSets, withAt(found, ['metadata', 'annotations'], annotations))
  })
  await t.rejects(fleet.upgrade('hub:0.2.0'), { code: 'TAKEN_OVER' })
  t.strictSame(images(fleet, 'a', 'b'), ['hub:0.1.0', 'hub:0.1.0'])
})

void t.test(
  'a release that cannot read the caches is refused before anything changes',
  async (t) => {
    const fleet = await startFleet(t, ['a', 'b'], newestSchema + 1)
    const said = await fleet.upgrade('hub:0.2.0')
    t.match(said, {
      code: 1,
      out: /caches are not kept: .* a, b have a later one/,
      err: /nothing was changed/,
    })
    t.strictSame(images(fleet, 'a', 'b'), ['hub:0.1.0', 'hub:0.1.0'])
    const known = valueAt(
      fleet.sandbox.get(daemonSets, 'nodehub-install', namespace),
      'metadata',
      'annotations',
    )
    t.equal(known, undefined)
  },
)

void t.test('the schema of this release is in the table of releases', async (t) => {
  t.equal(schemaOfRelease[ownVersion()], newestSchema)
})
