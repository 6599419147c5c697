import t from 'tap'
import { readClientConfig, readClusterConfig } from '../../src/config/cluster-config.ts'
import { checkOptions, giveBackOptions } from '../../src/config/cluster-options.ts'

const files: Readonly<Record<string, string>> = {
  '/k': 'apiVersion: v1\nkind: Config\n',
  '/c.yaml': 'workers: 3\nlease-name: other\n',
}

const readFile = (path: string): string => {
  const text = files[path]
  if (text === undefined) throw Object.assign(new Error('none'), { code: 'ENOENT' })
  return text
}

const from = (argv: readonly string[], env: Record<string, string> = {}) => ({
  argv,
  env,
  readFile,
})

void t.test('a kubeconfig is all that must be given', async (t) => {
  const read = readClusterConfig(from(['--kubeconfig=/k', '--config=/c.yaml']))
  t.match('config' in read && read.config, {
    access: { kind: 'kubeconfig', file: '/k' },
    namespace: 'kube-system',
    webhooks: {
      port: 10283,
      service: 'nodehub-cluster',
      serving: { kind: 'secret', name: 'nodehub-cluster-certificates' },
      podHostNetwork: false,
    },
    election: { name: 'other', leaseMs: 15_000, renewMs: 10_000, retryMs: 2000 },
    takeOver: false,
    workers: 3,
    ops: { port: 10287 },
  })
})

void t.test('in a pod its service account is used', async (t) => {
  const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' }
  const read = readClientConfig(from([], env), giveBackOptions)
  t.match('config' in read && read.config.access, {
    kind: 'pod',
    server: new URL('https://[fd00::1]:443'),
    tokenFile: '/var/run/secrets/kubernetes.io/serviceaccount/token',
  })
})

void t.test('all mistakes are reported', async (t) => {
  const argv = [
    '--kubeconfig=/gone',
    '--serving-ca=/k',
    '--lease-duration=5s',
    '--webhok-port=1',
    '--workers=0',
  ]
  const read = readClusterConfig(from(argv))
  t.match('mistakes' in read && read.mistakes, [
    '--webhok-port is not known, did you mean --webhook-port?',
    /--workers: "0"/,
    /--kubeconfig: \/gone cannot be read/,
    '--serving-ca: it goes with --serving-cert',
    /--renew-deadline must be less than --lease-duration/,
  ])
  t.match(readClusterConfig(from(['--kubeconfig=/k', '--client-ca=/k'])), {
    mistakes: ['--client-ca: the CA of /k is not a certificate in PEM'],
  })
  t.match(readClientConfig(from([]), checkOptions), {
    mistakes: ['--kubeconfig is required where this is no pod with a service account'],
  })
  t.match(readClientConfig(from(['--kubeconfig=/k', '--apply', '--only=a/b']), checkOptions), {
    notes: [/^--apply has no effect any more/, /^--only has no effect any more/],
  })
})
