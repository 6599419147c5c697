/**
 * Runs the commands that documents show: against a hub with an API server in memory, a stopped
 * hub's state, or the root of a node in a folder. Those that are not run have a reason; those that
 * need a real API server are run by test/control-plane/documented-commands.test.ts.
 */
import t, { type Test } from 'tap'
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { runCli } from '../../src/cli/cli.ts'
import { nodeName, pod, pods, podsOfNode } from '../kit/cloud.ts'
import { startHubProcess } from '../kit/hub-process.ts'
import { onlineNode, startCloud } from '../kit/hub.ts'
import { rootFolder } from '../kit/root-folder.ts'
import { said } from '../kit/terminal.ts'
import { documentedCommands } from '../documented-commands.ts'
import { nodeRoot } from '../node/join/node-root.ts'
import { findBinaries } from '../kit/cluster/binaries.ts'
import { linesWithWays, patterns } from './shell-lines.ts'

t.setTimeout(200_000)

/** Where a command is run, or why it is not. */
type Way =
  | 'as it is'
  /** At a running hub. */
  | 'hub'
  /** With the state of a hub that is stopped. */
  | 'stopped hub'
  /** With a node's files in a folder. */
  | 'node'
  | { readonly notRun: string }

const ofCluster = { notRun: 'needs a cluster: documented-commands.test.ts runs it' } as const

/** The first row that fits a command counts, and each fits one that no row before does. */
const ways: readonly (readonly [RegExp, Way])[] = [
  [/^manifests /, 'as it is'],
  [/^lint /, 'as it is'],
  [/^check-config /, { notRun: "reads the kubelet's certificate: cli.test.ts runs it" }],
  [/^join .*--restart/, { notRun: 'restarts the kubelet of the node' }],
  [/^join .*\.\.\.$/, { notRun: 'is a part of a command' }],
  [/^join .*--join-token/, { notRun: 'obtains a certificate: kubelet-bootstrap.test.ts runs it' }],
  [/^join /, 'node'],
  [/^leave .*--restart/, { notRun: 'restarts the kubelet of the node' }],
  [/^adopt /, { notRun: 'needs a node with a yurthub: adopt-command.test.ts runs it' }],
  [/^cluster /, ofCluster],
  [/^inspect \S+ --watch/, { notRun: 'has no end; test/cli/inspect/ watches' }],
  [/^inspect .*--root-dir=/, 'stopped hub'],
  [/^inspect /, 'hub'],
]

const ofNodehub = (line: string): string => line.replace(/^nodehub /, '')

const wayOf = (line: string): number => ways.findIndex(([pattern]) => pattern.test(ofNodehub(line)))

const commands = [...new Set(documentedCommands())]

void t.test('each command has a way to run, and vice versa', async (t) => {
  t.ok(commands.length > 20)
  for (const line of commands) t.ok(wayOf(line) >= 0, line)
  for (const [i, [pattern]] of ways.entries())
    t.ok(
      commands.some((line) => wayOf(line) === i),
      `${pattern}`,
    )
})

/** Exit codes of reports that find something: not ready, a port that is taken. */
const findings =
  /^(?:inspect (?:boot|bundle|filters|get|status|upstreams|pod|host-network|certificates)|lint) ?/

async function succeeds(t: Test, line: string, argv: readonly string[]): Promise<void> {
  const { code, out, err } = await said((terminal) => runCli(argv, terminal))
  const allowed = findings.test(ofNodehub(line)) ? [0, 1] : [0]
  t.ok(allowed.includes(code), line, { code, out: out.slice(-500), err })
  t.not(out, '', `${line} prints`)
}

/** Files of a page's reader, by files here. */
function filesOfReader(folder: string): (line: string) => string[] {
  const at = (name: string): string => join(folder, name)
  mkdirSync(at('tmp'))
  writeFileSync(
    at('config.yaml'),
    'server-addr: https://10.0.0.1:6443\nbootstrap-mode: anonymous\n',
  )
  writeFileSync(at('shop.yaml'), 'apiVersion: v1\nkind: Pod\nmetadata: { name: shop }\nspec: {}\n')
  return (line) =>
    ofNodehub(line)
      .replaceAll(/(^|[ =])\/(?:tmp|root)\//g, `$1${at('tmp')}/`)
      .replaceAll(/(^|[ =])shop\.yaml/g, `$1${at('shop.yaml')}`)
      .replaceAll('/etc/nodehub/config.yaml', at('config.yaml'))
      .split(' ')
}

const linesOf = (way: Way): string[] => commands.filter((line) => ways[wayOf(line)]?.[1] === way)

/** Puts flags before the words that end with `--`. */
const withFlags = (argv: readonly string[], ...flags: readonly string[]): string[] => {
  const end = argv.indexOf('--')
  return end < 0 ? [...argv, ...flags] : [...argv.slice(0, end), ...flags, ...argv.slice(end)]
}

void t.test('commands without a hub run as shown', async (t) => {
  const words = filesOfReader(rootFolder(t))
  for (const line of linesOf('as it is')) await succeeds(t, line, words(line))
})

void t.test('commands at a running hub run as shown', async (t) => {
  const cloud = await startCloud(t)
  cloud.sandbox.create(
    { group: '', version: 'v1', resource: 'namespaces' },
    { metadata: { name: 'shop' } },
  )
  cloud.sandbox.create(
    pods,
    pod('web-0', { metadata: { name: 'web-0', namespace: 'shop', labels: {} } }),
  )
  const hub = await startHubProcess(t, { upstreams: [cloud] })
  await hub.as('kubelet').list(podsOfNode)
  const words = filesOfReader(rootFolder(t))
  const tokenFile = join(hub.rootDir, 'state', 'inspect.token')
  const flags = [`--serve-port=${hub.opsPort}`, `--token-file=${tokenFile}`]
  for (const line of linesOf('hub')) await succeeds(t, line, withFlags(words(line), ...flags))
})

void t.test('commands with the state of a stopped hub run as shown', async (t) => {
  const { hub } = await onlineNode(t)
  await hub.as('kubelet').list(podsOfNode)
  const { rootDir } = hub.config
  await hub.stop()
  const words = filesOfReader(rootFolder(t))
  for (const line of linesOf('stopped hub')) {
    const argv = words(line).filter((word) => !word.startsWith('--root-dir='))
    await succeeds(t, line, [...argv, `--root-dir=${rootDir}`])
  }
})

void t.test('commands that write files of a node run as shown', async (t) => {
  const folder = rootFolder(t)
  const words = filesOfReader(folder)
  for (const [i, line] of linesOf('node').entries()) {
    const argv = words(line)
    const root = join(folder, `node-${i}`)
    mkdirSync(root)
    // The pool would be read from the API server of the node's kubelet.
    const flags = ['--host-network-pool=false', `--root=${nodeRoot(root)}`]
    await succeeds(t, line, [...argv, ...flags])
  }
})

void t.test('the flags after -- are read from the files that join writes', async (t) => {
  const folder = rootFolder(t)
  const page = readFileSync('docs/inspect.md', 'utf8')
  const flags = ['--server-addr=https://10.0.0.1:6443', '--root-dir=/var/lib/nodehub']
  for (const [path, part] of [
    ['/etc/systemd/system/nodehub.service', 'systemd --unit nodehub.service'],
    ['/etc/kubernetes/manifests/nodehub.yaml', 'static-pod'],
  ] as const) {
    const file = join(folder, basename(path))
    const words = ['manifests', '--part', ...part.split(' '), ...flags, '--image=nodehub:1']
    await runCli(words, { out: (text) => writeFileSync(file, text), err: (text) => t.fail(text) })
    const [, command = ''] = page.match(new RegExp(`\\$\\((sed .* ${path})\\)`)) ?? []
    const { stdout } = await promisify(execFile)('sh', ['-c', command.replace(path, file)])
    t.strictSame(stdout.split(/\s+/).filter(Boolean).slice(0, 2), flags, path)
    t.notMatch(stdout, '--disable-sigusr1')
  }
})

void t.test('each shell line has a way to run, and vice versa', async (t) => {
  for (const { page, line, way } of linesWithWays) {
    t.ok(way, `${page}: ${line}`)
    if (typeof way === 'object' && 'by' in way) t.ok(existsSync(way.by), way.by)
  }
  for (const [i, pattern] of patterns.entries())
    t.ok(
      linesWithWays.some(({ row }) => row === i),
      `${pattern}`,
    )
})

const exec = promisify(execFile)

const shellLines = (way: 'hub' | 'units'): string[] =>
  linesWithWays.filter((each) => each.way === way).map(({ line }) => line)

const missing = (...names: string[]): string | false => {
  const found = findBinaries(['bash', ...names])
  return 'missing' in found && found.missing
}

void t.test('lines of a shell at a running hub', { skip: missing('curl', 'ss') }, async (t) => {
  const cloud = await startCloud(t)
  const hub = await startHubProcess(t, {
    upstreams: [cloud],
    flags: ['--anonymous-loopback=node'],
  })
  await hub.as('kubelet').list(podsOfNode)
  const ports = { 10_261: hub.proxyPort, 10_267: hub.opsPort, 10_268: hub.securePort }
  for (const line of shellLines('hub')) {
    const here = Object.entries(ports)
      .reduce((text, [port, own]) => text.replaceAll(`:${port}`, `:${own}`), line)
      .replaceAll(/\$\(hostname\)|\bNAME\b/g, nodeName)
    // grep finds nothing where no port has such an owner.
    const { stdout, stderr } = await exec('bash', ['-c', `${here} || true`])
    t.equal(stderr, '', line)
    if (line.startsWith('curl ')) t.match(stdout, /200|ok|\{/i, line)
  }
})

void t.test('units are written and enabled as shown', { skip: missing('systemctl') }, async (t) => {
  const root = rootFolder(t)
  const units = join(root, 'etc/systemd/system')
  mkdirSync(units, { recursive: true })
  const command = `nodehub() { ${process.execPath} ${join(process.cwd(), 'src/main.ts')} "$@"; }`
  // A package has the units already, which the other page writes.
  const lines = shellLines('units').toSorted(
    (a, b) => Number(b.startsWith('for ')) - Number(a.startsWith('for ')),
  )
  for (const line of lines) {
    // The line before it writes the unit, and is run with the commands of the hub.
    const [unit] = /(?<=^systemctl enable --now )nodehub-dummy\.service$/.exec(line) ?? []
    const write =
      unit && `nodehub manifests --part systemd --unit ${unit} > /etc/systemd/system/${unit}\n`
    const here = `${write ?? ''}${line}`
      .replaceAll('/etc/systemd/system', units)
      // No systemd runs in the root.
      .replace(/^systemctl daemon-reload\n?/m, '')
      .replaceAll('systemctl enable --now', `systemctl --root=${root} enable`)
    await exec('bash', ['-ec', `${command}\n${here}`])
  }
  t.strictSame(readdirSync(units).toSorted(), [
    'multi-user.target.wants',
    'nodehub-dummy.service',
    'nodehub-ipv6.socket',
    'nodehub.service',
    'nodehub.socket',
    'sockets.target.wants',
  ])
  t.strictSame(readdirSync(join(units, 'sockets.target.wants')).toSorted(), [
    'nodehub-ipv6.socket',
    'nodehub.socket',
  ])
})
