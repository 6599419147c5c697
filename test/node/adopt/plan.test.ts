import t, { type Test } from 'tap'
import fs from 'node:fs'
import { join } from 'node:path'
import { CannotAdopt, planAdoption, type AdoptionPlan } from '../../../src/node/adopt/plan.ts'
import type { AdoptionSettings } from '../../../src/node/adopt/plan.ts'
import { NodeFiles } from '../../../src/node/join/node-files.ts'
import { treeOf } from '../join/node-root.ts'
import { addUnit, manifest, server, settings, yurthubPod, yurthubRoot } from './yurthub-root.ts'

const plan = (root: string, more: Partial<AdoptionSettings> = {}): AdoptionPlan =>
  planAdoption(new NodeFiles(root), { ...settings, ...more })

function refusal(root: string, more: Partial<AdoptionSettings> = {}): readonly string[] {
  const before = treeOf(root)
  try {
    plan(root, more)
  } catch (cause) {
    if (!(cause instanceof CannotAdopt)) throw cause
    if (JSON.stringify(treeOf(root)) !== JSON.stringify(before)) throw new Error('it wrote')
    return cause.reasons
  }
  return []
}

let roots = 0

const withFlags = (t: Test, flags: string[], more: object = {}): string =>
  yurthubRoot(t.testdir({ [`${++roots}`]: {} }), { pod: yurthubPod([server, ...flags], more) })

void t.test('each flag of yurthub is kept, or dropped with a reason', async (t) => {
  const root = withFlags(t, [
    '--node-name=$(NODE_NAME)',
    '--lb-mode=rr',
    '--hub-agent-dummy-if-name=dummy7',
    '--heartbeat_interval_seconds',
    '5',
    '--gc-frequency=60',
    '--root-dir=/srv/yurthub',
    '--disk-cache-path=/srv/cache',
    '--join-token=abcdef.0123456789abcdef',
    '--bootstrap-file=/var/lib/yurthub/bootstrap-hub.conf',
    '--enable-iptables=true',
    '--nodepool-name=',
    '--disabled-resource-filters=masterservice',
    '--disabled-resource-filters=servicetopology',
    '--proxy-port=10361',
  ])
  const { flags, record } = plan(root)
  t.strictSame(
    flags.flags.map(({ given, fate }) => `${given} ${fate}`),
    [
      '--server-addr=https://10.0.0.1:6443 kept',
      '--node-name=edge-1 dropped',
      '--lb-mode=rr kept',
      '--hub-agent-dummy-if-name=dummy7 kept',
      '--heartbeat-interval-seconds=5 kept',
      '--gc-frequency=60 dropped',
      '--root-dir=/srv/yurthub dropped',
      '--disk-cache-path=/srv/cache dropped',
      '--join-token=[redacted] dropped',
      '--bootstrap-file=/var/lib/yurthub/bootstrap-hub.conf dropped',
      '--enable-iptables=true dropped',
      '--nodepool-name= dropped',
      '--disabled-resource-filters=masterservice,servicetopology kept',
      '--proxy-port=10361 kept',
    ],
  )
  for (const { fate, reason } of flags.flags) t.ok(fate !== 'dropped' || reason !== undefined)
  t.equal(record.ports.proxy, 10_361)
  t.strictSame(flags.more, [
    '--lb-mode=rr',
    '--dummy-if-name=dummy7',
    '--heartbeat-interval-seconds=5',
    '--disabled-resource-filters=masterservice,servicetopology',
  ])
})

void t.test('all flags of yurthub 1.4 to 1.7 have a fate', async (t) => {
  const all = JSON.parse(fs.readFileSync('test/fixtures/yurthub/flags.json', 'utf8')) as readonly {
    readonly flag: string
    readonly value: string
  }[]
  const taken = ['server-addr', 'working-mode', 'bind-address', 'version']
  const flags = all.filter(({ flag }) => !taken.includes(flag))
  const root = withFlags(
    t,
    flags.map(({ flag, value }) => `--${flag}=${value}`),
  )
  t.strictSame(refusal(root, { dropped: [] }), [])
  t.ok(plan(root).flags.flags.length > 55)
})

void t.test('a flag that the hub does not know is refused until it is named', async (t) => {
  const root = withFlags(t, ['--of-a-fork=x', '--other', 'word', '--v=many'])
  t.match(refusal(root), [
    /^--of-a-fork is not known: correct it, or name the flag in --drop-flags$/,
    /^--other is not known/,
    /^"word" is not a flag/,
    /^--v: "many" is not a whole number .*--drop-flags$/,
  ])
  t.match(plan(root, { dropped: ['of-a-fork', 'other', 'v'] }).flags.flags, [
    { fate: 'kept' },
    { fate: 'dropped', reason: '--drop-flags names it' },
    { fate: 'dropped' },
    { fate: 'dropped' },
  ])
  t.match(refusal(root, { dropped: ['of-a-fork', 'other', 'v', 'w'] }), [
    /^--drop-flags names w, and yurthub has no such flag/,
  ])
})

void t.test('a yurthub that the hub cannot replace is refused', async (t) => {
  for (const [flags, reason] of [
    [['--working-mode=local'], /is no proxy of the kubelet/],
    [['--bind-address=10.0.0.7'], /the hub is probed at 127\.0\.0\.1/],
    [['--server-addr=http://127.0.0.1:10261'], /is a hub of this node itself/],
    [['--node-name=edge-9', '--server-addr=https://edge-9:10268'], /is a hub of this node itself/],
    [['--disabled-resource-filters=nothing'], /"nothing" is no filter/],
    [['--node-ip=$(HOST_IP)'], /\$\(HOST_IP\), which only the kubelet knows/],
  ] as const) {
    const hostIp = { name: 'HOST_IP', valueFrom: { fieldRef: { fieldPath: 'status.hostIP' } } }
    const more = flags[0].includes('HOST_IP') ? { env: [hostIp] } : {}
    t.match(refusal(withFlags(t, [...flags], more)), [reason], flags[0])
  }
  const none = yurthubRoot(t.testdir({ none: {} }), { pod: null })
  t.match(refusal(none), [/no yurthub starts with this node/])
})

void t.test('a container that names no program starts that of its image', async (t) => {
  const args = ['--root-dir=/var/lib/yurthub', server, '--v=2']
  const root = yurthubRoot(t.testdir({ image: {} }), {
    pod: yurthubPod([], { command: undefined, args }),
  })
  t.strictSame(
    plan(root).flags.flags.map(({ given }) => given),
    args,
  )
})

void t.test('a foreign or hostile manifest changes nothing', async (t) => {
  for (const [pod, reason] of [
    ['{{{', /it is no YAML/],
    ['', /it is no Pod/],
    ['- a\n- b\n', /it is no Pod/],
    ['a: &a [x]\nb: [*a, *a]\n', /it is no YAML: .*alias/i],
    [`kind: Pod\nspec: ${'['.repeat(20_000)}`, /it is no YAML/],
    ['kind: Pod\nspec: {containers: [{name: a, image: b}]}\n', /none of its containers/],
    [
      'kind: Pod\nspec: {containers: [{name: a, command: [sh, -c, yurthub]}]}\n',
      /started by another program, sh/,
    ],
    [
      'kind: Pod\nspec: {containers: [{name: a, command: [yurthub]}, {name: sidecar}]}\n',
      /other containers, .*sidecar/,
    ],
  ] as const) {
    const root = yurthubRoot(t.testdir({ [`${++roots}`]: {} }), { pod })
    t.match(refusal(root), [reason], pod.slice(0, 30))
  }
  const large = yurthubRoot(t.testdir({ large: {} }), { pod: 'x'.repeat(5 * 1024 * 1024) })
  t.throws(() => plan(large), /larger than 4 MiB/)
  const piped = yurthubRoot(t.testdir({ piped: {} }), { pod: null })
  fs.mkdirSync(join(piped, manifest))
  t.throws(() => plan(piped), /is no file/)
})

void t.test('a symlink out of the root is ignored', async (t) => {
  const outside = join(t.testdir({ 'outside.yaml': yurthubPod([server]), node: {} }))
  const root = yurthubRoot(join(outside, 'node'), { pod: null })
  fs.symlinkSync(join(outside, 'outside.yaml'), join(root, manifest))
  t.match(refusal(root), [/it is no Pod/])
  fs.rmSync(join(root, manifest))
  fs.symlinkSync('../../../../../../outside.yaml', join(root, manifest))
  t.match(refusal(root), [/it is no Pod/])
})

void t.test('missing files are named', async (t) => {
  const without = (path: string): string => {
    const root = yurthubRoot(t.testdir({ [`${++roots}`]: {} }))
    fs.rmSync(join(root, path))
    return root
  }
  t.match(refusal(without('/etc/kubernetes/pki/ca.crt')), [
    /the kubelet's cannot be used \(.*\/etc\/kubernetes\/pki\/ca\.crt.*nor yurthub's own \(.*--kubeconfig/,
  ])
  const units = yurthubRoot(t.testdir({ [`${++roots}`]: {} }), { pod: null })
  addUnit(units)
  fs.rmSync(join(units, '/proc/19'), { recursive: true })
  t.match(refusal(units), [/yurthub\.service: its flags are read of its process, and none runs/])
})

void t.test('a node that has joined, or has another hub, is refused', async (t) => {
  const hub = yurthubRoot(t.testdir(), {
    files: { '/etc/kubernetes/manifests/nodehub.yaml': 'kind: Pod\n' },
  })
  t.match(refusal(hub), [/nodehub\.yaml starts a hub of its own/])
  const files = { '/etc/kubernetes/manifests/.yurt-hub.yaml.nodehub-adopted': '' }
  const stale = yurthubRoot(t.testdir({ stale: {} }), { files })
  t.match(refusal(stale), [/nodehub-adopted is there, and no adoption is recorded/])
})

void t.test('other variables of yurthub are noted', async (t) => {
  const env = [
    { name: 'NODE_NAME', value: 'edge-1' },
    { name: 'HTTPS_PROXY', value: 'http://proxy' },
  ]
  t.match(plan(withFlags(t, [], { env })).notes, [/not passed on to the hub: HTTPS_PROXY$/])
  t.match(plan(withFlags(t, ['--enable-dummy-if=false'])).notes, [])
  const unit = yurthubRoot(t.testdir({ unit: {} }), { pod: null })
  addUnit(unit)
  t.match(plan(unit).notes, [/not passed on to the hub: HTTPS_PROXY$/])
  const ofInterface = ['--hub-agent-dummy-if-ip=fd00::7', '--dummy-if-name=dummy7']
  t.match(plan(withFlags(t, ofInterface)).notes, [
    /\(fd00::7\) .* --unit nodehub-dummy\.service --dummy-if-ip=fd00::7 --dummy-if-name=dummy7 makes/,
  ])
})
