import t from 'tap'
import fs from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { Adoption } from '../../../src/node/adopt/adoption-record.ts'
import { planAdoption, type AdoptionSettings } from '../../../src/node/adopt/plan.ts'
import { rollBack, swapIn, type NodeControl } from '../../../src/node/adopt/swap.ts'
import { NodeFiles } from '../../../src/node/join/node-files.ts'
import { killedAt } from '../join/killed.ts'
import { treeOf } from '../join/node-root.ts'
import {
  addUnit,
  identityOf,
  manifest,
  obedient,
  settings,
  yurthubPod,
  yurthubRoot,
} from './yurthub-root.ts'

t.setTimeout(240_000)

const state = '/var/lib/nodehub'
const aside = '/etc/kubernetes/manifests/.yurt-hub.yaml.nodehub-adopted'

async function apply(
  root: string,
  control: NodeControl = obedient,
  more: Partial<AdoptionSettings> = {},
): Promise<void> {
  const files = new NodeFiles(root)
  await swapIn(files, state, planAdoption(files, { ...settings, ...more }), control)
}

async function back(root: string, control: NodeControl = obedient): Promise<readonly string[]> {
  const files = new NodeFiles(root)
  const record = new Adoption(files, state).read()
  return record === undefined ? [] : rollBack(files, state, record, control)
}

const phaseOf = (root: string): string | undefined =>
  new Adoption(new NodeFiles(root), state).read()?.phase

/** Of the hub's state: keys that are made anew, and the record. */
const own = [`${state}/pki`, `${state}/adopted`]

let copies = 0

function copyOf(t: { testdirName: string }, root: string): string {
  const copy = join(t.testdirName, `copy-${++copies}`)
  fs.cpSync(root, copy, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true })
  return copy
}

void t.test('the hub replaces a static pod, and rollback restores the same file', async (t) => {
  const root = yurthubRoot(t.testdir())
  fs.chmodSync(join(root, manifest), 0o640)
  const before = treeOf(root, state)
  const identity = identityOf(root)
  await apply(root)
  t.notOk(fs.existsSync(join(root, manifest)))
  t.strictSame(identityOf(root, aside), identity)
  const pod = parse(
    fs.readFileSync(join(root, '/etc/kubernetes/manifests/nodehub.yaml'), 'utf8'),
  ) as {
    spec: { containers: [{ args: string[]; env: unknown[] }] }
  }
  t.strictSame(pod.spec.containers[0].args, [
    'start',
    '--server-addr=https://10.0.0.1:6443',
    '--root-dir=/var/lib/nodehub',
    '--bootstrap-mode=kubeletcertificate',
    '--v=2',
  ])
  t.strictSame(pod.spec.containers[0].env, [{ name: 'NODE_NAME', value: 'edge-1' }])
  t.match(fs.readFileSync(join(root, '/usr/local/bin/nodehub'), 'utf8'), '#!/bin/sh')
  await t.rejects(apply(root), { message: /is adopted already/ })
  t.strictSame(await back(root), [])
  t.strictSame(treeOf(root, state), before)
  t.strictSame(identityOf(root), identity)
  t.notOk(fs.existsSync(join(root, state, 'adopted')))
})

void t.test('for units only the links of boot are renamed', async (t) => {
  const root = yurthubRoot(t.testdir(), { pod: null })
  addUnit(root)
  const before = treeOf(root, state)
  const link = '/etc/systemd/system/multi-user.target.wants/yurthub.service'
  const identity = identityOf(root, link)
  await apply(root)
  t.throws(() => fs.lstatSync(join(root, link)))
  t.match(
    fs.readFileSync(join(root, '/etc/systemd/system/nodehub.service'), 'utf8'),
    / start --server-addr=https:\/\/10\.0\.0\.1:6443 --root-dir=\/var\/lib\/nodehub --bootstrap-mode=kubeletcertificate --v=2\n/,
  )
  await back(root)
  t.strictSame(treeOf(root, state), before)
  t.strictSame(identityOf(root, link), identity)
})

void t.test('a hub without the kubelet’s certificate takes over yurthub’s own', async (t) => {
  const root = yurthubRoot(t.testdir())
  const kubelets = join(root, '/var/lib/kubelet/pki/kubelet-client-current.pem')
  const pki = join(root, '/var/lib/yurthub/pki')
  fs.mkdirSync(pki)
  fs.renameSync(kubelets, join(pki, 'yurthub-1.pem'))
  fs.symlinkSync('/var/lib/yurthub/pki/yurthub-1.pem', join(pki, 'yurthub-current.pem'))
  t.throws(() => planAdoption(new NodeFiles(root), settings), /nor yurthub's own .*ca\.crt/)
  fs.copyFileSync(join(root, '/etc/kubernetes/pki/ca.crt'), join(pki, 'ca.crt'))
  const before = treeOf(root, state)
  await apply(root)
  const own = join(root, state, 'pki')
  t.match(fs.readlinkSync(join(own, 'nodehub-client-current.pem')), /^nodehub-client-\d+\.pem$/)
  t.match(fs.readFileSync(join(own, 'nodehub-client-current.pem'), 'utf8'), 'BEGIN PRIVATE KEY')
  t.notMatch(
    fs.readFileSync(join(root, '/etc/kubernetes/manifests/nodehub.yaml'), 'utf8'),
    'kubeletcertificate',
  )
  await back(root)
  t.strictSame(treeOf(root, state), before)
  t.notOk(fs.readdirSync(own).some((name) => name.startsWith('nodehub-client')))
})

void t.test('an adoption killed at any step can be resumed or undone', async (t) => {
  t.testdir()
  const ofPod = yurthubRoot(join(t.testdirName, 'pod'))
  const ofUnits = yurthubRoot(join(t.testdirName, 'units'), { pod: null })
  addUnit(ofUnits)
  for (const base of [ofPod, ofUnits]) {
    const before = treeOf(base, state)
    const done = copyOf(t, base)
    await apply(done)
    const adopted = treeOf(done, ...own)
    let points = 0
    for (const [act, from] of [
      [apply, base],
      [back, done],
    ] as const) {
      for (let at = 1; ; at++) {
        const root = copyOf(t, from)
        if (await killedAt(at, () => act(root).then(undefined, () => undefined))) break
        points += 1
        const where = `${act.name}, killed at its step ${at}`
        // One step is resumed and the next undone: neighbours leave much the same behind.
        if (at % 2 === 0) {
          if (phaseOf(root) !== 'adopted') await apply(root)
          t.equal(phaseOf(root), 'adopted', where)
          t.strictSame(treeOf(root, ...own), adopted, `${where}: adopted`)
          continue
        }
        await back(root)
        t.strictSame(treeOf(root, state), before, `${where}: back`)
        t.notOk(fs.existsSync(join(root, state, 'adopted/record.json')), where)
      }
    }
    t.ok(points > 30, `${points} steps`)
  }
})

void t.test('a step that fails fails the adoption, and rollback works', async (t) => {
  const failures: readonly (readonly [Partial<NodeControl>, RegExp])[] = [
    [{ portsFree: async () => ['yurthub listens'] }, /yurthub did not end: yurthub listens/],
    [{ stopYurthub: async () => 'no bus' }, /yurthub was not stopped: no bus/],
    [{ startHub: async () => 'no unit' }, /the hub was not started: no unit/],
    [{ ready: async () => 'Node a is not Ready' }, /not ready with the hub: Node a is not Ready/],
    [{ ready: () => Promise.reject(new Error('broken')) }, /not ready with the hub: broken/],
  ]
  for (const [i, [failing, message]] of failures.entries()) {
    const root = yurthubRoot(t.testdir({ [`${i}`]: {} }))
    const before = treeOf(root, state)
    await t.rejects(apply(root, { ...obedient, ...failing }), { message })
    await back(root)
    t.strictSame(treeOf(root, state), before)
  }
})

void t.test('a manifest that something else writes again fails the adoption', async (t) => {
  const root = yurthubRoot(t.testdir())
  const identity = identityOf(root)
  const again = async (): Promise<undefined> => {
    fs.writeFileSync(join(root, manifest), yurthubPod(['--v=3']))
  }
  await t.rejects(apply(root, { ...obedient, ready: again }), { message: /a YurtStaticSet/ })
  t.match(await back(root), [/written again meanwhile: a copy is in \/var\/lib\/nodehub\/left/])
  t.strictSame(identityOf(root), identity)
  t.match(fs.readFileSync(join(root, state, 'left/yurt-hub.yaml'), 'utf8'), '--v=3')
})

void t.test(
  'an adoption that was interrupted while the hub starts waits for no port',
  async (t) => {
    const root = yurthubRoot(t.testdir())
    const cut: NodeControl = { ...obedient, ready: async () => 'cut' }
    await t.rejects(apply(root, cut))
    await apply(root, { ...obedient, portsFree: async () => ['the hub itself'] })
    t.equal(phaseOf(root), 'adopted')
  },
)

void t.test('a record of another release is refused', async (t) => {
  const root = yurthubRoot(t.testdir())
  await apply(root)
  const path = join(root, state, 'adopted/record.json')
  const record = JSON.parse(fs.readFileSync(path, 'utf8')) as Record<string, unknown>
  fs.writeFileSync(path, JSON.stringify({ ...record, version: 2 }))
  await t.rejects(back(root), { message: /of another release/ })
})
