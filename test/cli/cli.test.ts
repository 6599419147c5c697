import t from 'tap'
import { createServer } from 'node:net'
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import { readConfig, type UsableConfig } from '../../src/config/config.ts'
import { isAcceptedOnly } from '../../src/config/option.ts'
import { options } from '../../src/config/options.ts'
import { runCli } from '../../src/cli/cli.ts'
import { readFlags } from '../../src/cli/command-flags.ts'
import { examples } from '../../src/cli/examples.ts'
import { joinFlags } from '../../src/cli/join-command.ts'
import { installFlags } from '../../src/cli/install-command.ts'
import { reference } from '../../packaging/reference.ts'
import { freePort } from '../kit/free-port.ts'
import { nodehubProgram } from '../kit/hub-programs.ts'
import { FilterFolder, moduleOf } from '../kit/own-filter.ts'
import { said, type Said } from '../kit/terminal.ts'
import { portOf } from '../kit/wire/listening.ts'

const wordsOf = (line: string): string[] => (line === '' ? [] : line.split(' '))

/** It has its process begin anew with settings of malloc. */
const beginsAnew = /^start --(?!help|version)/

/** Runs a line in this process: a process of its own for each takes most of their time. */
const nodehub = (line: string): Promise<Said> =>
  beginsAnew.test(line) ? started(line) : said((terminal) => runCli(wordsOf(line), terminal))

const { PATH, NODE_COMPILE_CACHE } = process.env

/** Runs the executable as a shell would; environment variables are added to a bare one. */
function started(line: string, env: Readonly<Record<string, string>> = {}): Promise<Said> {
  const { promise, resolve } = Promise.withResolvers<Said>()
  const options = { env: { PATH, NODE_COMPILE_CACHE, ...env } }
  execFile(process.execPath, [nodehubProgram, ...wordsOf(line)], options, (error, out, err) =>
    resolve({ code: Number(error?.code ?? 0), out, err }),
  )
  return promise
}

void t.test('cluster says what is wrong in a sentence', async (t) => {
  const unread = await started('cluster --kubeconfig=/dev/null')
  t.strictSame([unread.code, unread.out], [1, ''])
  t.match(
    unread.err,
    /^nodehub cluster: it could not be started: the kubeconfig \/dev\/null cannot .*\n$/,
  )
  t.match(
    (await nodehub('cluster chek')).err,
    '"chek" is no command of the cluster\'s side, did you mean check?',
  )
  const port = await freePort()
  const kubeconfig = join(
    t.testdir({ config: kubeconfigOf(`https://127.0.0.1:${port}`) }),
    'config',
  )
  t.strictSame(await started(`cluster check --kubeconfig=${kubeconfig}`), {
    code: 1,
    out: '',
    err: `nodehub cluster check: the API server https://127.0.0.1:${port} cannot be reached: connect ECONNREFUSED 127.0.0.1:${port}; check the address in the kubeconfig, and that this host reaches it\n`,
  })
})

const kubeconfigOf = (server: string): string =>
  JSON.stringify({
    clusters: [{ name: 'c', cluster: { server } }],
    users: [{ name: 'u', user: { token: 'x' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  })

void t.test('the help of a subcommand of cluster has its own flags alone', async (t) => {
  const own = { check: '--context', 'exit-plan': '--keep-off', 'give-back': '--kubeconfig' }
  for (const [word, flag] of Object.entries(own)) {
    const { code, out } = await nodehub(`cluster ${word} --help`)
    t.equal(code, 0)
    t.match(out, `Usage: nodehub cluster ${word} `)
    t.match(out, `\n  ${flag}`)
    t.notMatch(out, '--webhook-port', word)
  }
  t.match((await nodehub('cluster upgrade --help')).out, 'there is no nodehub cluster upgrade')
  const { out } = await nodehub('cluster --help')
  t.match(out, '--webhook-port')
  t.notMatch(out, '--keep-off')
})

void t.test('every command has help that names its flags', async (t) => {
  const overview = await started('--help')
  t.equal(overview.code, 0)
  const commands = [...overview.out.matchAll(/^ {2}([a-z-]+) {2,}/gm)].map(([, name = '']) => name)
  t.strictSame(commands, [
    'start',
    'check-config',
    'join',
    'leave',
    'adopt',
    'install',
    'inspect',
    'lint',
    'manifests',
    'cluster',
    'kubectl',
    'completion',
    'demo',
    'version',
  ])
  for (const command of commands) {
    const { code, out, err } = await nodehub(`${command} --help`)
    t.match({ code, err }, { code: 0, err: '' }, command)
    t.match(out, `Usage: ${command === 'kubectl' ? 'kubectl nodehub' : `nodehub ${command}`}`)
    t.ok(
      out.split('\n').every((line) => line.length <= 100),
      `${command}: lines fit a terminal`,
    )
  }
  for (const words of ['start', 'cluster check', 'inspect boot'])
    t.equal((await nodehub(`help ${words}`)).out, (await nodehub(`${words} --help`)).out)
})

void t.test(
  'start --help lists every flag that has an effect, and with --all the rest',
  async (t) => {
    const { out } = await nodehub('start --help')
    const { out: all } = await nodehub('start --help --all')
    for (const [name, { group }] of Object.entries(options)) {
      const line = new RegExp(`^ {2}--${name}( |$)`, 'm')
      t.equal(line.test(out), !isAcceptedOnly(group), name)
      t.match(all, line, name)
    }
    t.match(out, /--help --all also lists \d+ flags without effect/)
  },
)

void t.test('a help says what a switch does, and has one word for rolling back', async (t) => {
  for (const { name, description, own } of await reference()) {
    const texts = [description, ...Object.values(own).map(({ help }) => help)]
    for (const text of texts) {
      t.notMatch(text, /^Whether /, name)
      t.notMatch(text, /\b(?:undo|revert|tak(?:e|es) (?:\w+ )?back|puts? back|restores?)\b/, name)
    }
  }
})

void t.test('former names of flags are accepted, and shown nowhere', async (t) => {
  const former = ['host-network-pool', 'dummy-interface', 'report']
  const flags = former.map((name) => `--${name}=false`)
  const { mistakes, notes, given } = readFlags(joinFlags, flags)
  t.strictSame({ mistakes, notes }, { mistakes: [], notes: [] })
  t.strictSame([...given], ['host-network-node', 'enable-dummy-if', 'offline-ready-condition'])
  for (const name of former) t.notMatch((await nodehub('join --help')).out, `--${name}`)
  const argv = ['--server-addr=a', '--bootstrap-mode=anonymous', '--hub-report']
  const read = readConfig({ argv, env: {}, hostname: 'h', readFile: () => '' })
  t.match(read, { config: { boot: { condition: true } }, notes: [] })
})

void t.test('every help ends with three examples, of flags that it names', async (t) => {
  const names = Object.keys(examples).filter((name) => !['version', 'completion'].includes(name))
  for (const name of [...names, 'inspect cache']) {
    const { out } = await nodehub(`${name} --help`)
    const [text = '', shown = ''] = out.split('\nExamples:\n')
    const typed = shown.match(/^ {2}(?:kubectl )?nodehub /gm) ?? []
    t.equal(typed.length, 3, name)
    const named = ['demo', 'check-config'].includes(name)
      ? (await nodehub('start --help')).out
      : text
    for (const [flag] of shown.matchAll(/(?<=\s)--?[a-z][a-z-]*/g))
      t.match(named, new RegExp(`(^|[\\s\\[])${flag}\\b`, 'm'), `${name}: ${flag}`)
  }
})

void t.test('an unknown command ends with 2 and a suggestion', async (t) => {
  const { code, out, err } = await started('strat')
  t.match({ code, out }, { code: 2, out: '' })
  t.match(err, 'there is no command "strat", did you mean start?')
})

void t.test('a command that is gone ends with 2 and what takes its place', async (t) => {
  for (const command of ['backup', 'restore']) {
    const { code, out, err } = await nodehub(`${command} /root/edge-1.tar`)
    t.match({ code, out }, { code: 2, out: '' })
    t.match(err, `there is no ${command} any more: a hub reads its cache again from the cloud`)
  }
})

void t.test('a configuration that cannot be used ends with 2 and every mistake', async (t) => {
  for (const command of ['start', 'check-config']) {
    const { code, out, err } = await nodehub(`${command} --serve-port=x --proxy-prt=1`)
    t.match({ code, out }, { code: 2, out: '' }, command)
    t.match(err, /--proxy-prt is not known.*\n.*--serve-port: "x".*\n.*--server-addr is required/)
  }
})

void t.test('mistakes in --filter-module are reported with all others', async (t) => {
  const folder = new FilterFolder(t)
  const bad = folder.write('bad.mjs', moduleOf('masterservice', `'leave'`))
  const good = folder.write('good.mjs', moduleOf('own', `'leave'`))
  for (const command of ['start', 'check-config']) {
    const { code, out, err } = await nodehub(`${command} --serve-port=x --filter-module=${bad}`)
    t.match({ code, out }, { code: 2, out: '' }, command)
    t.match(
      err,
      /--serve-port: "x".*\n(.*\n)*.*--filter-module: .*the name masterservice is already that of/,
    )
  }
  const flags =
    '--server-addr=https://a --bootstrap-mode=anonymous --proxy-port=0 --serve-port=0 --proxy-secure-port=0'
  const fine = await nodehub(`check-config ${flags} --filter-module=${good}`)
  t.equal(fine.code, 0, fine.err)
  t.notMatch(fine.err, /filter-module/)
  const disabling = `check-config ${flags} --filter-module=${good} --disabled-resource-filters`
  t.equal((await nodehub(`${disabling}=own,masterservice,*`)).code, 0)
  const misspelt = await nodehub(`${disabling}=owm`)
  t.equal(misspelt.code, 2)
  t.match(misspelt.err, '--disabled-resource-filters: "owm" is no filter, did you mean own?')
})

void t.test('version prints nodehub and Node', async (t) => {
  const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string }
  const expected = `nodehub ${version}\nnode ${process.versions.node}\n`
  const printed = { code: 0, out: expected, err: '' }
  t.strictSame(await started('--version'), printed)
  for (const line of ['version', '--version', 'start --version'])
    t.strictSame(await nodehub(line), printed, line)
})

void t.test('no command sends a bootstrap token over plain HTTP', async (t) => {
  const flags =
    '--server-addr=https://127.0.0.1:1,http://127.0.0.1:2 --join-token=abcdef.0123456789abcdef --discovery-token-unsafe-skip-ca-verification'
  for (const command of ['start', 'check-config', 'join --nodepool-name=p']) {
    const { code, out, err } = await nodehub(`${command} ${flags}`)
    t.equal(code, 2, command)
    t.match(
      err,
      /http:\/\/127\.0\.0\.1:2 has no TLS, .*the bootstrap token: give an https: address/,
    )
    t.notMatch(out + err, /0123456789abcdef/)
  }
})

void t.test('join takes the bootstrap token from the environment as well', async (t) => {
  const env = { NODEHUB_JOIN_TOKEN: 'abcdef.0123456789abcdef' }
  const { code, err } = await started('join --nodepool-name=p', env)
  t.equal(code, 2)
  t.match(err, /--join-token: --server-addr is required/)
  const wrong = await started('join --nodepool-name=p', { NODEHUB_JOIN_TOKEN: 'abcdef' })
  t.match(wrong.err, /--join-token: the value is no bootstrap token/)
})

void t.test('check-config prints an equivalent configuration file', async (t) => {
  const line =
    'check-config --server-addr=https://a:1,b:2 --bootstrap-mode=anonymous --lb-mode rr --join-token=abcdef.0123456789abcdef'
  const { code, out, err } = await started(line, { NODEHUB_SERVE_PORT: '7', NODE_NAME: 'edge-1' })
  t.equal(code, 0)
  t.match(err, /^note: --join-token has no effect: --bootstrap-mode is anonymous$/m)
  t.notMatch(out + err, /abcdef/)
  t.strictSame(parse(out), {
    'server-addr': 'https://a:1,b:2',
    'bootstrap-mode': 'anonymous',
    'lb-mode': 'rr',
    'serve-port': '7',
  })
  t.match(out, /^# node-name: "edge-1"$/m)
  t.match(out, /^# disk-cache-path: "\/var\/lib\/nodehub\/cache"$/m)
  t.notMatch(out, 'leader-elect', 'what has no effect is not in force')
  const again = readConfig({
    argv: ['--config=/c'],
    env: { NODE_NAME: 'edge-1' },
    hostname: 'h',
    readFile: () => out,
  })
  t.match(again, { config: { ops: { port: 7 }, lbMode: 'round-robin', nodeName: 'edge-1' } })
})

void t.test('lines that check-config comments out are the settings in force', async (t) => {
  const flags = ['--server-addr=https://a', '--bootstrap-mode=anonymous', '--node-name=n']
  const { out } = await nodehub(`check-config ${flags.join(' ')}`)
  const shown = out.replaceAll(/^# ([\w-]+: ".*")$/gm, '$1')
  t.match(shown, /^plain-proxy: "true"$/m)
  const read = (argv: readonly string[], text = '') =>
    readConfig({ argv, env: {}, hostname: 'h', readFile: () => text })
  const [given, left] = [read(['--config=/c'], shown), read(flags)]
  t.ok('config' in given && 'config' in left)
  // Who has decided on the plain proxy is no part of what is in force.
  const inForce = ({ config }: UsableConfig) => ({
    ...config,
    proxy: { ...config.proxy, plain: undefined },
  })
  t.strictSame('config' in given && inForce(given), 'config' in left && inForce(left))
  const refusing = await nodehub(`check-config ${flags.join(' ')} --host-network-node`)
  t.match(refusing.out, /^# plain-proxy:$/m, 'refusing every caller is neither')
})

void t.test('manifests reports mistakes', async (t) => {
  const { code, err } = await nodehub('manifests --part static-pod --imag=x --node-name=A stray')
  t.equal(code, 2)
  for (const mistake of [
    '--imag is not known, did you mean --image?',
    '"stray" is not a flag',
    '--server-addr is required for the static pod',
    '--node-name: "A" is not a name',
  ]) {
    t.match(err, mistake)
  }
  t.match(
    (await nodehub('manifests')).err,
    '--part is required, one of static-pod, systemd, kubeconfig, rbac, configmap',
  )
  t.match(
    (await nodehub('manifests --part=static-pod --server-addr=a --kubeconfig=/root/k')).err,
    'is not under /etc/kubernetes',
  )
})

void t.test('the kubelet’s kubeconfig names its certificate and the hub’s authority', async (t) => {
  const user = (certificate: string, key: string) => [
    { name: 'kubelet', user: { 'client-certificate': certificate, 'client-key': key } },
  ]
  const pair = '/var/lib/kubelet/pki/kubelet-client-current.pem'
  const other = await nodehub('manifests --part kubeconfig --root-dir=/data --proxy-secure-port=1')
  t.match(parse(other.out), {
    clusters: [
      {
        cluster: { server: 'https://127.0.0.1:1', 'certificate-authority': '/data/pki/ca.crt' },
      },
    ],
    users: user(pair, pair),
  })
  const wrong = await nodehub(
    'manifests --part kubeconfig --certificate-authority=k --proxy-secure-port=x',
  )
  t.match(wrong.err, '--certificate-authority: "k" is no absolute path')
  t.match(wrong.err, '--proxy-secure-port: "x" is not a port')
})

interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
}

interface Pod extends Manifest {
  readonly spec: {
    readonly hostNetwork: boolean
    readonly priorityClassName: string
    readonly containers: readonly {
      readonly image: string
      readonly args: readonly string[]
      readonly env: readonly object[]
      readonly livenessProbe: object
      readonly readinessProbe: object
      readonly securityContext: { readonly capabilities: object }
      readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
    }[]
    readonly volumes: readonly { readonly name: string; readonly hostPath: { path: string } }[]
  }
}

void t.test('the static pod has hostNetwork, probes and the mounts that it reads', async (t) => {
  const { code, out } = await nodehub(
    'manifests --part static-pod --server-addr=https://10.0.0.1:6443,10.0.0.2:6443 --image=r/n:1 --root-dir=/data',
  )
  t.equal(code, 0)
  const { kind, metadata, spec } = parse(out) as Pod
  const [container, ...more] = spec.containers
  t.strictSame(container?.securityContext.capabilities, {
    drop: ['ALL'],
    add: ['NET_BIND_SERVICE'],
  })
  t.strictSame([kind, metadata.namespace, more.length], ['Pod', 'kube-system', 0])
  t.match(spec, { hostNetwork: true, priorityClassName: 'system-node-critical' })
  t.match(container, {
    image: 'r/n:1',
    env: [{ name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }],
    livenessProbe: { httpGet: { host: '127.0.0.1', port: 10267, path: '/livez' } },
    readinessProbe: { httpGet: { host: '127.0.0.1', port: 10267, path: '/readyz' } },
  })
  const paths = ['/data', '/etc/kubernetes', '/var/lib/kubelet/pki']
  t.strictSame(
    container?.volumeMounts.map(({ mountPath }) => mountPath),
    paths,
  )
  t.strictSame(
    spec.volumes.map(({ hostPath }) => hostPath.path),
    paths,
  )
  const result = readConfig({
    argv: container?.args.slice(1) ?? [],
    env: { NODE_NAME: 'edge-1' },
    hostname: 'h',
    // The kubelet's files are there and hold nothing: that is found out, and nothing else is wrong.
    readFile: () => '',
  })
  t.match(result, { mistakes: [/^--bootstrap-mode=kubeletcertificate: .*not a certificate/] })
})

void t.test('the ports of the static pod can be set, and its probes follow', async (t) => {
  const { out } = await nodehub(
    'manifests --part=static-pod --server-addr=a --proxy-port=961 --serve-port=967 --proxy-secure-port=968',
  )
  const [container] = (parse(out) as Pod).spec.containers
  t.match(container, {
    livenessProbe: { httpGet: { port: 967 } },
    readinessProbe: { httpGet: { port: 967 } },
  })
  const ports = container?.args.filter((arg) => arg.includes('-port='))
  t.strictSame(ports, ['--proxy-port=961', '--proxy-secure-port=968', '--serve-port=967'])
})

void t.test('the units need API servers, and are three', async (t) => {
  const { code, err } = await nodehub('manifests --part=systemd --unit=nodehub')
  t.equal(code, 2)
  t.match(err, '--server-addr is required for the units')
  t.match(err, '--unit: "nodehub" is none of nodehub.socket, nodehub-ipv6.socket, nodehub.service')
})

void t.test('check-config refuses a client certificate that is not valid now', async (t) => {
  const authority = await CertificateAuthority.create('cluster')
  const request = { commonName: 'system:node:edge-1', usage: 'client' } as const
  const checked = async (lifetimeMs: number) => {
    const { certificate, key } = await authority.issue({ ...request, lifetimeMs })
    const folder = t.testdir({ 'node.crt': certificate, 'node.key': key })
    const pair = `--upstream-client-cert=${folder}/node.crt --upstream-client-key=${folder}/node.key`
    return nodehub(`check-config --server-addr=https://a --node-name=edge-1 ${pair}`)
  }
  const expired = await checked(-24 * 3_600_000)
  t.match(expired, { code: 2, out: '' })
  t.match(
    expired.err,
    /the hub's client certificate expired \d{4}-\d\d-\d\dT\S+Z \(file .*\/node\.crt; node clock \d{4}-\S+Z\)/,
  )
  t.equal((await checked(3_600_000)).code, 0)
})

void t.test('a node can be named, and given credentials of its own', async (t) => {
  const { out } = await nodehub(
    'manifests --part=static-pod --server-addr=a --node-name=edge-1 --kubeconfig=/etc/kubernetes/hub.conf',
  )
  const [container] = (parse(out) as Pod).spec.containers
  t.strictSame(container?.env, [{ name: 'NODE_NAME', value: 'edge-1' }])
  t.ok(container?.args.includes('--kubeconfig=/etc/kubernetes/hub.conf'))
})

void t.test('manifests takes --admission without effect, and says so', async (t) => {
  const [{ out }, given] = await Promise.all([
    nodehub('manifests --part cluster'),
    nodehub('manifests --part cluster --admission=policies'),
  ])
  t.strictSame([given.code, given.out], [0, out])
  t.match(given.err, /^note: --admission has no effect any more: webhooks admit nodes and pods/)
})

void t.test('adopting DaemonSets pass flags of adopt on, which are checked before', async (t) => {
  const flags = ['--drop-flags=v,lb-mode', '--manifest-dir=/etc/pods', '--timeout=10m']
  const printed = `manifests --part adoption --root-dir=/data ${flags.map((flag) => `--adopt-flag=${flag}`).join(' ')}`
  const sets = parseAllDocuments((await nodehub(printed)).out).map((document) => {
    const set = document.toJS() as {
      spec: { template: { spec: { initContainers: [{ args: string[] }] } } }
    }
    return set.spec.template.spec.initContainers[0].args.map((arg) =>
      arg.replace('$(NODE_NAME)', 'edge-1'),
    )
  })
  t.equal(sets.length, 2)
  for (const [command, ...args] of sets) {
    t.equal(command, 'install')
    const { values, mistakes } = readFlags(installFlags, args)
    t.strictSame(mistakes, [])
    t.match(values, {
      adopt: true,
      'root-dir': '/data',
      'manifest-dir': '/etc/pods',
      'drop-flags': ['v', 'lb-mode'],
      timeout: 600_000,
    })
  }
  const wrong = 'manifests --part adoption --adopt-flag=--drop-flag=v --adopt-flag=--systemd'
  const { code, err } = await nodehub(wrong)
  t.equal(code, 2)
  t.match(err, '--adopt-flag: --drop-flag is not known, did you mean --drop-flags?')
  t.match(err, '--adopt-flag: --systemd is not for a DaemonSet')
  t.match(
    (await nodehub('manifests --part nodes --adopt-flag=--timeout=4s')).err,
    '--adopt-flag is for --part adoption',
  )
  t.match(await nodehub('install --timeout=4s'), { code: 2, err: /--timeout is for --adopt/ })
})

void t.test('RBAC and ConfigMap are documents kubectl takes', async (t) => {
  const rbac = parseAllDocuments((await nodehub('manifests --part rbac')).out)
  t.match(
    rbac.map((document) => (document.toJS() as Manifest).kind),
    ['ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding'],
  )
  const { out } = await nodehub('manifests --part=configmap --namespace=edge')
  t.match(parse(out), { kind: 'ConfigMap', metadata: { name: 'yurt-hub-cfg', namespace: 'edge' } })
})

void t.test('RBAC lets nodes list and watch all that hubs share', async (t) => {
  const rulesOf = async (more = ''): Promise<unknown> => {
    const [role] = parseAllDocuments((await nodehub(`manifests --part=rbac${more}`)).out)
    return (role?.toJS() as { rules: unknown } | undefined)?.rules
  }
  const verbs = ['get', 'list', 'watch']
  const always = [
    { apiGroups: [''], resources: ['services'], verbs },
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs },
  ]
  const nodePools = {
    apiGroups: ['apps.openyurt.io'],
    resources: ['nodepools', 'nodebuckets'],
    verbs,
  }
  t.strictSame(await rulesOf(), [...always, nodePools])
  const [, ...rest] = always
  t.strictSame(await rulesOf(' --pool-scope-resources=/v1/configmaps,apps/v1/daemonsets'), [
    { apiGroups: [''], resources: ['services', 'configmaps'], verbs },
    ...rest,
    { apiGroups: ['apps'], resources: ['daemonsets'], verbs },
    nodePools,
  ])
  t.strictSame(await rulesOf(' --offline-authorization=rbac'), [...always, nodePools])
  const former = await nodehub('manifests --part=rbac --offline-authorization=rbac')
  t.match(former.err, '--offline-authorization has no effect any more')
  const { err } = await nodehub('manifests --part=rbac --pool-scope-resources=configmaps')
  t.match(err, /is not group\/version\/resource/)
})

void t.test('RBAC lets nodes read the hubs’ ConfigMap, and no other', async (t) => {
  const { out } = await nodehub('manifests --part=rbac --namespace=edge')
  const [, , role, binding] = parseAllDocuments(out).map((document) => document.toJS() as unknown)
  t.match(role, {
    metadata: { namespace: 'edge' },
    rules: [
      {
        apiGroups: [''],
        resources: ['configmaps'],
        resourceNames: ['yurt-hub-cfg'],
        verbs: ['get', 'list', 'watch'],
      },
    ],
  })
  t.match(binding, { metadata: { namespace: 'edge' }, subjects: [{ name: 'system:nodes' }] })
})

void t.test('check-config reports a port that is taken', async (t) => {
  const port = await portOf(t, createServer())
  const { code, err } = await nodehub(
    `check-config --server-addr=https://a --bootstrap-mode=anonymous --proxy-port=${port} --serve-port=0 --proxy-secure-port=0`,
  )
  t.equal(code, 0, 'as it is where the hub runs')
  t.match(err, `note: 127.0.0.1:${port} is taken: "${process.execPath}" (process ${process.pid}, `)
  t.match(err, '; --proxy-port sets another port\n')
  t.notMatch(err, /--serve-port|--proxy-secure-port/)
})

void t.test('start --help marks flags that change live', async (t) => {
  const { out } = await nodehub('start --help')
  const plain = out.replace(/\s+/g, ' ')
  t.match(plain, 'Others get 429. Default: 250. (live)')
})
