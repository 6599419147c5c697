import t from 'tap'
import { readFileSync } from 'node:fs'
import { readConfig } from '../../src/config/config.ts'
import { readNodeFile } from '../kit/node-files.ts'

/**
 * The flags of yurthub 1.4.0 to 1.7.0: those of cmd/yurthub/app/options/options.go at each tag of openyurtio/openyurt, and those that
 * k8s.io/component-base/cli/globalflag adds in the version of that tag's go.mod (klog's own up to 1.4.4). `value` is one that a node
 * may have, and not the default; `empty` tells that yurthub takes the flag with nothing behind it.
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
    env: {},
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
    const needless = flag === 'logtostderr'
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

void t.test('what a template left empty counts as left out, where yurthub has it so', async (t) => {
  const empty = flags.filter(
    ({ flag, empty }) => empty && flag !== 'server-addr' && flag !== 'node-name',
  )
  const { config, notes } = understood([server, ...empty.map(({ flag }) => `--${flag}=`)])
  t.equal(config.nodepoolName, undefined)
  t.equal(config.pods.dummyAddress, undefined)
  t.notOk(notes.some((note) => note.startsWith('--bootstrap-file')))
})

void t.test('what is switched off asks for nothing that is missing', async (t) => {
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

void t.test('the kubelet’s certificate comes with those who vouch for clients', async (t) => {
  t.strictSame(understood([server, '--bootstrap-mode=kubeletcertificate']).notes, [])
})
