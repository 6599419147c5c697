import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { readConfig, type ConfigResult, type ConfigSources } from '../../src/config/config.ts'
import { variableOf } from '../../src/config/option.ts'
import { options } from '../../src/config/options.ts'
import { obtainedFiles } from '../../src/config/root-dir.ts'
import { readNodeFile } from '../kit/node-files.ts'

const noFiles = (path: string): string => {
  throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' })
}

function read(argv: readonly string[], others: Partial<ConfigSources> = {}): ConfigResult {
  const env = { NODEHUB_BOOTSTRAP_MODE: 'anonymous', ...others.env }
  return readConfig({ argv, readFile: noFiles, hostname: 'Edge-1', ...others, env })
}

function right(argv: readonly string[], others: Partial<ConfigSources> = {}) {
  const result = read(['--server-addr=https://a:6443', ...argv], others)
  if ('mistakes' in result) throw new Error(result.mistakes.join('\n'))
  return result
}

function wrong(argv: readonly string[], others: Partial<ConfigSources> = {}): readonly string[] {
  const result = read(['--server-addr=https://a:6443', ...argv], others)
  if (!('mistakes' in result)) throw new Error('it was taken')
  return result.mistakes
}

const files = (content: Readonly<Record<string, string>>) => (path: string) =>
  content[path] ?? noFiles(path)

void t.test('an API server is all that must be given', async (t) => {
  t.match(right([]).config, {
    nodeName: 'edge-1',
    serverAddresses: [new URL('https://a:6443')],
    ops: { address: '127.0.0.1', port: 10267 },
    proxy: { address: '127.0.0.1', port: 10261, securePort: 10268, plain: undefined },
    plainProxy: 'served',
    anonymousLoopback: 'root',
    rootDir: '/var/lib/nodehub',
    cachePath: '/var/lib/nodehub/cache',
    lbMode: 'round-robin',
    upstreamCompression: false,
    heartbeat: { intervalMs: 10_000, timeoutMs: 2000, failedRetry: 3, healthyThreshold: 2 },
    maxRequestsInFlight: 250,
    shutdownGracePeriodMs: 10_000,
    logLevel: 'info',
    credentials: { kind: 'none' },
  })
  t.strictSame(read([]), {
    mistakes: ['--server-addr is required: the address of an API server'],
    filterModules: [],
  })
})

void t.test('an address of the hub is refused', async (t) => {
  const addresses = ['127.0.0.1', '::1', '192.0.2.7', 'fe80::1']
  const mistakes = (...argv: string[]): readonly string[] => {
    const result = read(argv, { addresses })
    return 'mistakes' in result ? result.mistakes : []
  }
  for (const server of [
    'http://127.0.0.1:10261',
    'https://localhost:10268',
    'https://[::1]:10268',
    'http://127.0.0.1:10267',
  ]) {
    t.strictSame(mistakes(`--server-addr=https://a:6443,${server}`), [
      `--server-addr: ${server} is the hub itself: name the API servers of the cluster`,
    ])
  }
  t.match(mistakes('--server-addr=https://127.0.0.1:443', '--proxy-secure-port=443'), [/itself/])
  for (const host of [
    'localhost.',
    'a.localhost',
    'LocalHost.localdomain',
    '[::ffff:127.0.0.1]',
    '127.1',
    '0.0.0.0',
    '[::]',
    '[::ffff:0.0.0.0]',
    'edge-1',
    'Edge-1.',
    'told',
  ])
    t.match(mistakes(`--server-addr=http://${host}:10261`, '--node-name=told'), [/itself/], host)
  for (const host of ['192.0.2.7', '[::ffff:192.0.2.7]', '127.0.0.2', '[::ffff:127.0.0.2]'])
    t.match(mistakes(`--server-addr=https://${host}:10268`), [/itself/], host)
  t.match(mistakes('--server-addr=https://h:443', '--hub-address=h:443'), [/itself/])
  t.match(mistakes('--server-addr=https://h.:443', '--hub-address=H:443'), [/itself/])
  const dummy = '--dummy-if-ip=169.254.2.1'
  t.match(mistakes('--server-addr=https://169.254.2.1:10268', dummy), [/itself/])
})

void t.test('an address that the hub does not serve is an API server', async (t) => {
  for (const argv of [
    ['--server-addr=https://127.0.0.1:6443'],
    ['--server-addr=https://192.0.2.8:10268', '--bind-proxy-address=0.0.0.0'],
    ['--server-addr=https://127.0.0.1:10268', '--proxy-secure-port=968'],
    ['--server-addr=https://edge-1:6443,https://edge-2:10268,https://localhost.example:10268'],
  ]) {
    const result = read(argv, { addresses: ['127.0.0.1', '192.0.2.7'] })
    t.notOk('mistakes' in result, argv.join(' '))
  }
})

void t.test('a hub without credentials needs a flag', async (t) => {
  const env = { NODEHUB_BOOTSTRAP_MODE: undefined }
  const mistakes = (...argv: string[]): readonly string[] => {
    const result = read(argv, { env })
    return 'mistakes' in result ? result.mistakes : []
  }
  const server = '--server-addr=https://a'
  const wanted = [
    /^the hub has no credentials, .*--bootstrap-mode=kubeletcertificate.*--kubeconfig/,
  ]
  t.match(mistakes(server), wanted)
  t.match(mistakes(server, '--bootstrap-mode=token'), wanted)
  t.strictSame(mistakes(server, '--bootstrap-mode=anonymous'), [])
  // A server of plain HTTP is one for tests, and takes none.
  t.strictSame(mistakes('--server-addr=http://a'), [])
})

void t.test('a hub that bootstraps needs a token and a CA', async (t) => {
  const env = { NODEHUB_BOOTSTRAP_MODE: undefined }
  const server = '--server-addr=https://a'
  const mistakes = (...argv: string[]): readonly string[] => {
    const result = read([server, ...argv], { env, readFile: readNodeFile })
    return 'mistakes' in result ? result.mistakes : []
  }
  const token = '--join-token=abcdef.0123456789abcdef'
  const hash = `--discovery-token-ca-cert-hash=sha256:${'0A'.repeat(32)}`
  t.strictSame(mistakes(token, hash), [])
  t.strictSame(mistakes(token, '--discovery-token-unsafe-skip-ca-verification'), [])
  t.strictSame(mistakes(token, '--upstream-ca=/etc/kubernetes/pki/ca.crt'), [])
  t.match(mistakes(token), [/^--join-token: the cluster's CA is not known: /])
  t.match(mistakes(token, hash, '--upstream-ca=/etc/kubernetes/pki/ca.crt'), [
    /^--upstream-ca: .*ca\.crt has none of the public keys of --discovery-token-ca-cert-hash, but sha256:/,
  ])
  for (const text of [
    'abcdef',
    'abcdef.0123',
    'ABCDEF.0123456789abcdef',
    'abcdef.0123456789abcdef.',
  ])
    t.strictSame(
      mistakes(`--join-token=${text}`, hash).map((mistake) => mistake.slice(0, 46)),
      ['--join-token: the value is no bootstrap token,'],
      'and nothing of missing credentials',
    )
  for (const text of ['sha256:0a', 'md5:00', `sha512:${'0a'.repeat(32)}`])
    t.match(mistakes(token, `--discovery-token-ca-cert-hash=${text}`), [
      /is no hash of a public key/,
    ])
  t.match(mistakes('--bootstrap-file=/missing'), [
    /^--bootstrap-file: \/missing cannot be read: there is no such file/,
  ])
  t.match(mistakes('--bootstrap-file=/etc/kubernetes/admin.conf'), [/^--bootstrap-file: /])
})

void t.test('no bootstrap token goes to an API server without TLS', async (t) => {
  const rootDir = t.testdir()
  const mistakes = (...argv: string[]): readonly string[] => {
    const env = { NODEHUB_BOOTSTRAP_MODE: undefined }
    const readFile = (path: string): string =>
      path.startsWith(rootDir) ? readFileSync(path, 'utf8') : readNodeFile(path)
    const result = read([`--root-dir=${rootDir}`, ...argv], { env, readFile })
    return 'mistakes' in result ? result.mistakes : []
  }
  const flags = [
    '--join-token=abcdef.0123456789abcdef',
    '--discovery-token-unsafe-skip-ca-verification',
  ]
  const inTheClear =
    /^--server-addr: http:\/\/b has no TLS, and anyone on the network path could read/
  t.match(mistakes('--server-addr=http://b', ...flags), [inTheClear])
  t.match(mistakes('--server-addr=https://a,http://b', ...flags), [inTheClear])
  t.match(mistakes('--server-addr=http://b', '--bootstrap-mode=token'), [inTheClear])
  t.match(
    mistakes('--server-addr=http://b', ...flags, '--serve-port=x').join('\n'),
    /--serve-port[^]*http:\/\/b has no TLS/,
    'beside the other mistakes',
  )
  t.match(
    mistakes('--server-addr=http://b', '--bootstrap-file=/etc/kubernetes/admin.conf').join('\n'),
    /http:\/\/b has no TLS/,
  )
  const { folder, token } = obtainedFiles(rootDir)
  mkdirSync(folder)
  writeFileSync(token, 'abcdef.0123456789abcdef\n')
  t.match(mistakes('--server-addr=https://a,http://b', ...flags.slice(1)), [inTheClear])
  t.strictSame(mistakes('--server-addr=http://b', '--bootstrap-mode=anonymous', ...flags), [])
})

void t.test('a flag comes before the environment, the environment before the file', async (t) => {
  const readFile = files({ '/c.yaml': 'serve-port: 1\nproxy-port: 1\nproxy-secure-port: 1\n' })
  const env = { NODEHUB_SERVE_PORT: '2', NODEHUB_PROXY_PORT: '2', NODEHUB_CONFIG: '/c.yaml' }
  const { config } = right(['--serve-port=3'], { readFile, env })
  t.equal(config.ops.port, 3)
  t.equal(config.proxy.port, 2)
  t.equal(config.proxy.securePort, 1)
})

void t.test('the node name is --node-name, else NODE_NAME, else the host’s name', async (t) => {
  const env = { NODE_NAME: 'from-env' }
  t.equal(right(['--node-name=told'], { env }).config.nodeName, 'told')
  t.equal(right([], { env }).config.nodeName, 'from-env')
  t.equal(right([]).config.nodeName, 'edge-1')
  t.match(wrong([], { hostname: 'my_host' }), [/host's name.*"my_host" is not a name/])
})

void t.test('flags are read as pflag reads them', async (t) => {
  const { config } = right([
    '--lb-mode',
    'rr',
    '--plain-proxy',
    '--enable-resource-filter=F',
    '--v=4',
    '--cache-components=Kubelet, coredns',
    '--cache-components',
    'mine',
    '--heartbeat_interval-seconds=5',
    '--serve-port=1',
    '--serve-port=2',
  ])
  t.equal(config.lbMode, 'round-robin')
  t.equal(config.filters.enabled, false)
  t.equal(config.logLevel, 'debug')
  t.strictSame([...config.cacheComponents], ['kubelet', 'coredns', 'mine'])
  t.equal(config.heartbeat.intervalMs, 5000)
  t.equal(config.ops.port, 2, 'the last one counts')
})

void t.test('all mistakes are reported together', async (t) => {
  const mistakes = wrong(
    [
      '--serv-port=1',
      'stray',
      '--serve-port=x',
      '--lb-mode=best',
      '--node-name=A_B',
      '--heartbeat-interval-seconds=0',
      '--kubeconfig=/none',
      '--upstream-ca=/none2',
      '--min-request-timeout=soon',
      '--config=/c.json',
      '--root-dir',
    ],
    { readFile: files({ '/c.json': '{"proxy-port": 70000, "proxi-port": 1}' }) },
  )
  t.strictSame(mistakes, [
    '--serv-port is not known, did you mean --serve-port?',
    '--root-dir needs a value',
    '"stray" is not a flag',
    '/c.json: proxi-port is not known, did you mean proxy-port?',
    '--lb-mode: "best" is none of round-robin, priority, consistent-hashing',
    '--heartbeat-interval-seconds: "0" is not a whole number from 1 to 86400',
    '--serve-port: "x" is not a port (0 to 65535)',
    '/c.json: proxy-port: "70000" is not a port (0 to 65535)',
    '--node-name: "A_B" is not a name Kubernetes takes (lower-case letters, digits, - and .)',
    '--min-request-timeout: "soon" is not a duration like 40s or 1m30s',
    '--kubeconfig and --upstream-ca: give one of them',
    '--kubeconfig: /none cannot be read: there is no such file',
    '--upstream-ca: /none2 cannot be read: there is no such file',
  ])
})

const mistakesIn = (argv: readonly string[], others: Partial<ConfigSources> = {}): unknown =>
  ({ mistakes: [], ...read(argv, others) }).mistakes

void t.test('a setting that is misspelt is named where one is missing', async (t) => {
  t.strictSame(mistakesIn(['-server-addr=https://a:1'], { env: { NODEHUB_SEVER_ADDR: 'x' } }), [
    '"-server-addr=https://a:1" is not a flag, did you mean --server-addr?',
    '--server-addr is required: the address of an API server',
    'NODEHUB_SEVER_ADDR is not known, did you mean NODEHUB_SERVER_ADDR?',
  ])
})

void t.test('a CA that is not PEM is blamed on its flag alone', async (t) => {
  const readFile = files({ '/ca': 'nothing of the kind', '/c': 'nor this', '/k': 'nor this' })
  const own = ['--upstream-client-cert=/c', '--upstream-client-key=/k']
  for (const flags of [own, []])
    t.strictSame(wrong([...flags, '--upstream-ca=/ca'], { readFile }), [
      '--upstream-ca: the CA of /ca is not a certificate in PEM',
    ])
})

void t.test('files of the TLS proxy that are not PEM are refused beforehand', async (t) => {
  const readFile = files({ '/a': 'nothing of the kind' })
  const mistakes = wrong(['--client-ca=/a', '--serving-cert=/a', '--serving-key=/a'], { readFile })
  t.strictSame(mistakes, [
    '--client-ca: the CA of /a is not a certificate in PEM',
    '--serving-cert, --serving-key: the certificate of /a is not a certificate in PEM',
  ])
})

void t.test('contradictory flags are refused', async (t) => {
  t.match(wrong(['--serving-cert=/a'], { readFile: files({ '/a': '' }) }), [
    '--serving-cert and --serving-key must be given together',
  ])
  t.match(wrong(['--serve-port=1', '--proxy-port=1']), ['--serve-port and --proxy-port are both 1'])
  t.match(wrong(['--server-addr=a:6443']), [/https:\/\/a:6443 is there twice/])
  t.match(wrong(['--proxy-port=1', '--proxy-secure-port=1']), [
    '--proxy-port and --proxy-secure-port are both 1',
  ])
  t.equal(right(['--serve-port=0', '--proxy-port=0', '--proxy-secure-port=0']).config.ops.port, 0)
  t.equal(right(['--bind-address=127.0.0.2', '--serve-port=10261']).config.ops.port, 10261)
})

void t.test('where pods could reach it, the plain proxy needs its flag', async (t) => {
  const plain = (...argv: string[]) => right(argv).config.plainProxy
  t.equal(plain(), 'served')
  t.equal(plain('--plain-proxy=false'), 'refusing')
  for (const flag of ['--host-network-node', '--host-network-propagation=on']) {
    t.equal(plain(flag), 'refusing')
    t.equal(plain(flag, '--plain-proxy'), 'served')
    t.equal(plain(flag, '--plain-proxy=false'), 'refusing')
  }
})

void t.test('modes of propagation that are gone count as off, with a warning', async (t) => {
  for (const former of ['guarded', 'observe']) {
    const { config, notes } = right([`--host-network-propagation=${former}`])
    t.equal(config.hostNetworkPropagation, 'off')
    t.equal(config.plainProxy, 'refusing', 'propagated pods may reach it')
    t.match(notes, [/^--host-network-propagation has no effect any more: guarded and observe/])
  }
  t.match(wrong(['--host-network-propagation=always']), [/"always" is none of off, on$/])
})

void t.test('an address of an API server is scheme, host and port', async (t) => {
  const read = (text: string) => right([`--server-addr=${text}`]).config.serverAddresses[1]?.href
  t.equal(read('10.0.0.1:6443'), 'https://10.0.0.1:6443/')
  t.equal(read('http://[fd00::1]:8080'), 'http://[fd00::1]:8080/')
  for (const text of ['https://b/path', 'https://u:p@b', 'ftp://b', 'https://b?x', 'https://']) {
    t.match(wrong([`--server-addr=${text}`]), [/^--server-addr: .* has /], text)
  }
  t.match(read(','), undefined)
})

void t.test('--dummy-if-ip takes the addresses that yurthub takes', async (t) => {
  const dummy = (...argv: readonly string[]) => right(argv).config.pods.dummy
  t.strictSame(dummy(), { name: 'hub-dummy0', address: '169.254.2.1' })
  t.strictSame(dummy('--node-ip=fd00::7'), { name: 'hub-dummy0', address: 'fd00::2:1' })
  t.strictSame(dummy('--dummy-if-ip=169.254.2.9', '--dummy-if-name=pods0'), {
    name: 'pods0',
    address: '169.254.2.9',
  })
  t.match(dummy('--dummy-if-ip=fd00:0::2:1'), { address: 'fd00::2:1' })
  t.equal(dummy('--dummy-if-ip=169.254.2.1', '--enable-dummy-if=false'), undefined)
  for (const name of ['-x', 'sixteen-letters-', 'a/b', 'a b']) {
    t.match(wrong([`--dummy-if-name=${name}`]), [/--dummy-if-name.* is not the name of an/], name)
  }
  for (const ip of ['10.0.0.1', '169.254.31.7', '169.254.1.1', 'dummy']) {
    t.match(wrong([`--dummy-if-ip=${ip}`]), [/--dummy-if-ip/], ip)
  }
})

void t.test('a serving certificate is given, or requested', async (t) => {
  t.match(right(['--hub-cert-signer=example.com/hubs']).config.tls, { signer: 'example.com/hubs' })
  t.match(wrong(['--hub-cert-signer=example.com/hubs', '--serving-cert=c', '--serving-key=k']), [
    '--hub-cert-signer and --serving-cert: give one of them',
  ])
  const { notes } = right(['--hub-cert-organizations=a'])
  t.ok(notes.includes('--hub-cert-organizations has no effect without --hub-cert-signer'))
  t.match(wrong(['--hub-cert-organizations=system:masters']), [/is a group of Kubernetes itself/])
})

void t.test('a hub that is the node requests one for pods by default', (t) => {
  const bootstrap = [
    '--join-token=abcdef.0123456789abcdef',
    `--discovery-token-ca-cert-hash=sha256:${'0'.repeat(64)}`,
  ]
  const tls = (...argv: readonly string[]) =>
    right(['--bootstrap-mode=token', ...bootstrap, ...argv]).config.tls
  const signed = { signer: 'kubernetes.io/kubelet-serving', signedFor: '169.254.2.1' }
  t.match(tls(), signed)
  t.match(tls('--dummy-if-ip=169.254.2.9'), { ...signed, signedFor: '169.254.2.9' })
  const none = { signer: undefined, signedFor: undefined }
  for (const flag of [
    'hub-cert-signer=',
    'enable-dummy-if=false',
    'hub-address=10.0.0.7',
    'hub-cert-organizations=a',
  ])
    t.match(tls(`--${flag}`), none, flag)
  t.match(right([]).config.tls, none, 'a hub without credentials of its own')
  t.match(tls('--hub-cert-signer=kubernetes.io/kubelet-serving'), {
    ...signed,
    signedFor: undefined,
  })
  t.end()
})

void t.test('a setting has aliases', async (t) => {
  const expected = { config: { pods: { dummy: { name: 'pods0' } } } }
  t.match(read(['--server-addr=https://a', '--hub-agent-dummy-if-name=pods0']), expected)
  const env = { NODEHUB_HUB_AGENT_DUMMY_IF_NAME: 'pods0' }
  t.match(read(['--server-addr=https://a'], { env }), expected)
  t.match(wrong(['--hub-agent-dummy-if-name=a/b']), [/^--hub-agent-dummy-if-name: "a\/b" is not/])
})

void t.test('--hub-address has the secure port unless it has its own', async (t) => {
  t.strictSame(right(['--hub-address=10.1.1.1', '--proxy-secure-port=7']).config.pods.hubAddress, {
    host: '10.1.1.1',
    port: 7,
  })
  t.strictSame(right(['--hub-address=[fd00::1]:9']).config.pods.hubAddress, {
    host: 'fd00::1',
    port: 9,
  })
  t.match(wrong(['--hub-address=a:b:c']), [/--hub-address/])
})

void t.test('shared collections are added to those there are', async (t) => {
  const { config } = right(['--pool-scope-resources=/v1/configmaps,apps/v1/deployments'])
  t.strictSame(
    config.poolScopeResources.map(({ group, version, resource }) => [group, version, resource]),
    [
      ['', 'v1', 'services'],
      ['discovery.k8s.io', 'v1', 'endpointslices'],
      ['', 'v1', 'configmaps'],
      ['apps', 'v1', 'deployments'],
    ],
  )
  t.match(wrong(['--pool-scope-resources=services']), [/is not group\/version\/resource/])
})

void t.test('disabling a filter precedes enabling it', async (t) => {
  const { config } = right([
    '--host-network-propagation=on',
    '--plain-proxy',
    '--disabled-resource-filters=hostnetworkpropagation',
  ])
  t.equal(config.hostNetworkPropagation, 'off')
  t.ok(right(['--access-server-through-hub=false']).config.filters.disabled.has('masterservice'))
})

void t.test('cloud mode disables the filters of the edge', async (t) => {
  const cloud = right(['--working-mode=cloud', '--host-network-propagation=on', '--plain-proxy'])
  t.strictSame(
    [...cloud.config.filters.disabled],
    ['discardcloudservice', 'forwardkubesvctraffic', 'serviceenvupdater', 'hostnetworkpropagation'],
  )
  t.equal(cloud.config.hostNetworkPropagation, 'off')
  t.strictSame([...right(['--working-mode=edge']).config.filters.disabled], [])
})

void t.test('disabling an unknown filter is a mistake', async (t) => {
  t.strictSame(wrong(['--disabled-resource-filters=masterservise,servicetopology,sieve']), [
    '--disabled-resource-filters: "masterservise" is no filter, did you mean masterservice?',
    '--disabled-resource-filters: "sieve" is no filter',
  ])
  t.ok(right(['--disabled-resource-filters=*']).config.filters.disabled.has('*'))
  const own = right(['--disabled-resource-filters=sieve', '--filter-module=/f.ts'])
  t.ok(own.config.filters.disabled.has('sieve'), 'a module may bring it')
})

void t.test('only flags without effect are noted, once', async (t) => {
  t.strictSame(right(['--working-mode=edge', '--lb-mode=priority', '--v=2']).notes, [
    'no credentials are given: callers without a token of their own are anonymous at the API servers',
    'no CA for clients of the TLS listener: without --client-ca only tokens are accepted',
  ])
  const { notes } = right(['--working-mode=cloud', '--leader-elect'])
  t.equal(notes.filter((note) => note.startsWith('--working-mode has no effect yet')).length, 1)
  t.ok(notes.some((note) => note.startsWith('--leader-elect has no effect here')))
})

void t.test(
  'unknown NODEHUB_ variables are noted, except those that Kubernetes sets',
  async (t) => {
    const env = {
      NODEHUB_SERVER_ADR: 'x',
      NODEHUB_COLOUR: 'blue',
      NODEHUB_METRICS_SERVICE_PORT_HTTP: '80',
      NODEHUB_SERVICE_HOST: '10.0.0.1',
      NODEHUB_PORT_443_TCP: 'tcp://10.0.0.1:443',
    }
    t.strictSame(
      right([], { env }).notes.filter((note) => note.includes('NODEHUB')),
      [
        'NODEHUB_SERVER_ADR is not known, did you mean NODEHUB_SERVER_ADDR?',
        'NODEHUB_COLOUR is not known',
      ],
    )
  },
)

void t.test('a file may be YAML or JSON, and must be a mapping of simple values', async (t) => {
  const server = (content: string) => read(['--config=/c'], { readFile: files({ '/c': content }) })
  const config = (content: string) => {
    const result = server(content)
    return 'config' in result ? result.config.serverAddresses.map(({ host }) => host) : result
  }
  t.strictSame(config('server-addr:\n  - https://a:1\n  - https://b:2\n'), ['a:1', 'b:2'])
  t.strictSame(config('{"server-addr": "https://a:1,b:2"}'), ['a:1', 'b:2'])
  for (const content of ['- a', 'text', 'a: [', 'server-addr: {a: b}', 'server-addr: [[a]]']) {
    t.match(server(content), { mistakes: [/^\/c: /] }, content)
  }
  t.match(server('server-addr: a:1\nserver-addr: b:1'), { mistakes: [/unique/] })
  t.match(read(['--config=/none']), { mistakes: [/--config: \/none cannot be read/] })
})

void t.test(
  'every option can be given as a flag, in the environment and in the file',
  async (t) => {
    const names = Object.keys(options)
    for (const name of names) {
      t.match(variableOf(name), /^NODEHUB_[A-Z0-9_]+$/)
      t.match(read([], { env: { [variableOf(name)]: '\n' } }), { mistakes: Array }, name)
    }
    t.equal(new Set(names.map(variableOf)).size, names.length)
  },
)

void t.test('no message has a secret', async (t) => {
  t.notMatch(right(['--join-token=abcdef.0123456789abcdef']).notes.join(), /abcdef/)
})

void t.test('every invalid address is reported, without passwords', async (t) => {
  const [mistake = '', ...others] = wrong([
    '--server-addr=ftp://x,https://u:secret@a:1,https://b:1/p',
  ])
  t.strictSame(others, [])
  for (const part of ['"ftp://x"', '"https://[redacted]@a:1"', '"https://b:1/p"']) {
    t.match(mistake, part)
  }
  t.notMatch(mistake, 'secret')
})

void t.test('the store’s key is the hub’s own, a credential, or a program’s output', async (t) => {
  const sourceOf = (argv: readonly string[], others: Partial<ConfigSources> = {}) =>
    right(argv, others).config.storeKey
  const passed = {
    env: { CREDENTIALS_DIRECTORY: '/run/credentials/nodehub' },
    readFile: files({ '/run/credentials/nodehub/key': 'k' }),
  }
  t.strictSame(sourceOf([]), { kind: 'own' })
  t.strictSame(sourceOf(['--store-key-credential=key'], passed), {
    kind: 'credential',
    file: '/run/credentials/nodehub/key',
  })
  t.strictSame(sourceOf(['--store-key-command=/usr/bin/unseal']), {
    kind: 'command',
    path: '/usr/bin/unseal',
  })
  t.match(wrong(['--store-key-credential=key']), [/CREDENTIALS_DIRECTORY.*LoadCredential=key/])
  t.match(wrong(['--store-key-credential=other'], passed), [/other cannot be read: there is no/])
  t.match(wrong(['--store-key-credential=key', '--store-key-command=/a'], passed), [/one of them/])
  for (const bad of ['../key', 'a/b', '..']) {
    t.match(wrong([`--store-key-credential=${bad}`], passed), [/is not the name of a credential/])
  }
  for (const bad of ['unseal', '/bin/sh -c true', './unseal']) {
    t.match(wrong([`--store-key-command=${bad}`]), [/is not the absolute path of a program/])
  }
})

void t.test('sizes are given as Kubernetes has them', async (t) => {
  const maxOf = (text: string) => right([`--cache-max-bytes=${text}`]).config.cacheMaxBytes
  t.equal(right([]).config.cacheMaxBytes, 512 * 2 ** 20)
  t.equal(maxOf('16Mi'), 2 ** 24)
  t.equal(maxOf('2G'), 2e9)
  t.equal(maxOf('1Gi'), 2 ** 30)
  t.equal(maxOf('20000000'), 20_000_000)
  for (const bad of ['512MB', '0.5Gi', 'x', '-1', '1e9', '999999999999Gi']) {
    t.match(wrong([`--cache-max-bytes=${bad}`]), [/is not a size like 512Mi/], bad)
  }
  t.match(wrong(['--cache-max-bytes=1Mi']), [/is less than 16Mi/])
})

void t.test('tracing is off by default, and takes the address of a collector', async (t) => {
  t.equal(right([]).config.tracing, undefined)
  t.equal(right(['--tracing-endpoint=']).config.tracing, undefined)
  const rate = '--tracing-sampling-rate-per-million=5'
  t.strictSame(right(['--tracing-endpoint=http://127.0.0.1:4318/otlp', rate]).config.tracing, {
    endpoint: new URL('http://127.0.0.1:4318/otlp'),
    samplingRatePerMillion: 5,
  })
  t.match(right([rate]).notes.join(' '), 'per-million has no effect without --tracing-endpoint')
  for (const [address, mistake] of [
    ['127.0.0.1:4318', 'is neither an https:// nor an http:// address'],
    ['grpc://a:4317', 'is neither an https:// nor an http:// address'],
    ['http://me:secret@a:4318', 'must not carry a password'],
    ['http://a:4318/?token=1', 'must end after the path'],
  ] as const) {
    const [said = ''] = wrong([`--tracing-endpoint=${address}`])
    t.match(said, mistake)
    t.notMatch(said, 'secret')
  }
  t.match(wrong(['--tracing-sampling-rate-per-million=1000001']), [/from 0 to 1000000/])
})
