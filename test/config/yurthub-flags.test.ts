import t from 'tap'
import { readFileSync } from 'node:fs'
import { readConfig } from '../../src/config/config.ts'
import { readNodeFile } from '../kit/node-files.ts'

/**
 * The flags of yurthub 1.4.0 to 1.7.0: those of cmd/yurthub/app/options/options.go at each tag of
 * openyurtio/openyurt, and those that k8s.io/component-base/cli/globalflag adds in the version of
 * that tag's go.mod (klog's own up to 1.4.4). `value` is one that a node may have, and not the
 * default; `empty` tells that yurthub takes the flag with nothing behind it.
 */
interface Flag {
  readonly flag: string
  readonly type: 'string' | 'strings' | 'bool' | 'int' | 'duration'
  readonly from: string
  readonly to: string
  readonly value: string
  readonly empty?: true
}

const flags = JSON.parse(readFileSync('test/fixtures/yurthub/flags.json', 'utf8')) as Flag[]
const read = (argv: readonly string[]) =>
  readConfig({
    argv,
    env: { NODEHUB_BOOTSTRAP_MODE: 'anonymous' },
    hostname: 'edge-1',
    readFile: readNodeFile,
  })

const server = '--server-addr=https://a:6443'

function understood(argv: readonly string[]) {
  const result = read(argv)
  if ('mistakes' in result) throw new Error(result.mistakes.join('\n'))
  return result
}

void t.test('every flag of yurthub 1.4 to 1.7 is accepted, however it is written', async (t) => {
  t.ok(flags.length >= 67)
  for (const { flag, type, value } of flags) {
    const spellings = [
      [`--${flag}=${value}`],
      ...(type === 'bool' ? [[`--${flag}`], [`--${flag}=F`]] : [[`--${flag}`, value]]),
      [`--${flag.replaceAll('-', '_')}=${value}`],
    ]
    for (const words of spellings) {
      t.notOk(
        'mistakes' in read([...(flag === 'server-addr' ? [] : [server]), ...words]),
        words.join(' '),
      )
    }
  }
  t.equal(understood([server, '-v2']).config.logLevel, 'info')
  t.equal(understood([server, '-v', '6']).config.logLevel, 'trace')
})

void t.test('a flag of yurthub is honoured, or named once', async (t) => {
  const untouched = JSON.stringify(understood([server]).config, seen)
  for (const { flag, value } of flags.filter(({ flag }) => flag !== 'version')) {
    const { config, notes } = understood([server, `--${flag}=${value}`])
    const named = notes.filter((note) => note.startsWith(`--${flag.replaceAll('_', '-')} `)).length
    const honoured = JSON.stringify(config, seen) !== untouched
    // Their values in the list are what holds in any case.
    const needless = flag === 'logtostderr' || flag === 'enable-dummy-if'
    t.ok(
      needless || (named === 1 ? true : named === 0 && honoured),
      `${flag}: named ${named} times`,
    )
  }
})

/** Sets are part of what a configuration says. */
const seen = (_: string, value: unknown): unknown => (value instanceof Set ? [...value] : value)

void t.test('all flags of a version can be given at once', async (t) => {
  for (const version of ['1.4.0', '1.4.4', '1.5.0', '1.6.0', '1.6.1', '1.7.0']) {
    const argv = flags
      .filter(({ flag, from, to }) => from <= version && version <= to && flag !== 'version')
      .map(({ flag, value }) => `--${flag}=${value}`)
    t.ok(argv.length > 40, version)
    t.notOk('mistakes' in read(argv), version)
  }
})

void t.test('empty flags count as unset where yurthub has it so', async (t) => {
  const empty = flags.filter(
    ({ flag, empty }) => empty && flag !== 'server-addr' && flag !== 'node-name',
  )
  const { config, notes } = understood([server, ...empty.map(({ flag }) => `--${flag}=`)])
  t.equal(config.nodepoolName, undefined)
  t.strictSame(config.pods.dummy, { name: 'hub-dummy0', address: '169.254.2.1' })
  t.notOk(notes.some((note) => note.startsWith('--bootstrap-file')))
})

void t.test('flags set to false cause no notes', async (t) => {
  const { notes } = understood([
    server,
    ...[
      'profiling',
      'enable-dummy-if',
      'enable-iptables',
      'leader-elect',
      'enable-coordinator',
    ].map((flag) => `--${flag}=false`),
  ])
  t.strictSame(
    notes.filter((note) => note.startsWith('--')),
    [],
  )
})

void t.test('with the kubelet’s certificate the client CA is found', async (t) => {
  t.strictSame(understood([server, '--bootstrap-mode=kubeletcertificate']).notes, [])
})

/** Command lines that yurthub's charts, manifests and tools lay down, filled in. */
const laidDown: Readonly<Record<string, string>> = {
  'config/setup/yurthub.yaml of 1.4':
    'yurthub --v=2 --server-addr=https://10.0.0.1:6443 --node-name=edge-1 --join-token=abcdef.0123456789abcdef',
  'yurtadm join of 1.4':
    'yurthub --v=2 --bind-address=127.0.0.1 --server-addr=https://10.0.0.1:6443,https://10.0.0.2:6443 --node-name=edge-1 --bootstrap-file=/var/lib/yurthub/bootstrap-hub.conf --working-mode=edge --namespace=kube-system --enable-dummy-if=true --enable-node-pool=true --hub-cert-organizations=openyurt:tenant:a --nodepool-name=hangzhou',
  'chart yurthub of 1.5 to 1.7, with values left empty':
    'yurthub --v=2 --bind-address=127.0.0.1 --server-addr=https://10.0.0.1:6443 --node-name=edge-1 --nodepool-name= --bootstrap-file= --working-mode=edge --namespace=kube-system',
  'chart yurthub, in the cloud':
    'yurthub --v=2 --bind-address=127.0.0.1 --server-addr=10.0.0.1:6443 --node-name=cloud-1 --bootstrap-file=/var/lib/yurthub/bootstrap-hub.conf --working-mode=cloud --namespace=kube-system',
  'yurtadm join of 1.7, systemd':
    'yurthub --node-name=edge-1 --nodepool-name=hangzhou --server-addr=https://10.0.0.1:6443 --bootstrap-mode=kubeletcertificate --bind-address=127.0.0.1 --working-mode=edge --namespace=kube-system --v=2',
  'yurtadm join of 1.6.1 and later, local mode':
    'yurthub --working-mode local --node-name edge-1 --server-addr 10.0.0.1:6443 --host-control-plane-address 10.9.0.1:6443',
}

for (const [origin, line] of Object.entries(laidDown)) {
  void t.test(`a documented command line starts the hub: ${origin}`, async (t) => {
    const { config, notes } = understood(line.split(' ').slice(1))
    t.match(config.nodeName, /^(edge|cloud)-1$/)
    t.equal(config.serverAddresses[0]?.href, 'https://10.0.0.1:6443/')
    const flags = notes.flatMap((note) => /^--\S+/.exec(note) ?? [])
    t.equal(new Set(flags).size, flags.length, 'each flag is named once')
  })
}
