import t from 'tap'
import { inspect } from 'node:util'
import { parseKubeconfig } from '../../src/config/kubeconfig.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')

const kubeconfig = ({ cluster = '', user = '', context = 'current-context: here' } = {}) => `
apiVersion: v1
kind: Config
${context}
clusters:
- name: elsewhere
  cluster: {server: https://elsewhere}
- name: edge
  cluster:
    server: https://10.0.0.1:6443
    ${cluster}
contexts:
- name: there
  context: {cluster: elsewhere, user: nobody}
- name: here
  context: {cluster: edge, user: node}
users:
- name: nobody
- name: node
  user:
    ${user || '{}'}
`

void t.test('the current context is used', async (t) => {
  const { server, ca, token } = parseKubeconfig(
    kubeconfig({ cluster: `certificate-authority-data: ${base64('CA')}`, user: 'token: abc' }),
    '/etc/kubernetes/hub.conf',
  )
  t.equal(server.href, 'https://10.0.0.1:6443/')
  t.strictSame(ca, { data: 'CA' })
  t.equal(token && 'data' in token && token.data.reveal(), 'abc')
})

void t.test('relative paths start where the kubeconfig is', async (t) => {
  const { clientCertificate, clientKey, token } = parseKubeconfig(
    kubeconfig({
      user: 'client-certificate: pki/a.pem\n    client-key: /abs/a.pem\n    tokenFile: ../token',
    }),
    '/etc/kubernetes/hub.conf',
  )
  t.strictSame(clientCertificate, { file: '/etc/kubernetes/pki/a.pem' })
  t.strictSame(clientKey, { file: '/abs/a.pem' })
  t.strictSame(token, { file: '/etc/token' })
})

void t.test('inline data precedes a path, and tokenFile precedes token', async (t) => {
  const { ca, token } = parseKubeconfig(
    kubeconfig({
      cluster: `certificate-authority: a\n    certificate-authority-data: ${base64('CA')}`,
      user: 'token: abc\n    tokenFile: /t',
    }),
    '/k',
  )
  t.strictSame(ca, { data: 'CA' })
  t.strictSame(token, { file: '/t' })
})

void t.test('JSON is read as well, and an only context needs no naming', async (t) => {
  const { server, serverName } = parseKubeconfig(
    JSON.stringify({
      clusters: [{ name: 'c', cluster: { server: 'https://c', 'tls-server-name': 'kubernetes' } }],
      contexts: [{ name: 'x', context: { cluster: 'c' } }],
    }),
    '/k',
  )
  t.equal(server.href, 'https://c/')
  t.equal(serverName, 'kubernetes')
})

void t.test('an invalid kubeconfig is refused with why', async (t) => {
  const cases: [string, RegExp][] = [
    ['kind: Config\na: [', /neither YAML nor JSON: line 2, column 5 \(\w+\)$/],
    ['just text', /is not a mapping/],
    [kubeconfig({ context: '' }), /no current-context/],
    [kubeconfig({ context: 'current-context: gone' }), /no context named gone/],
    [kubeconfig({ user: 'exec: {command: aws}' }), /it uses exec/],
    [kubeconfig({ user: 'username: a\n    password: b' }), /it uses username, password/],
    [kubeconfig({ cluster: 'insecure-skip-tls-verify: true' }), /insecure-skip-tls-verify/],
    [kubeconfig({ cluster: 'insecure-skip-tls-verify: yes' }), /insecure-skip-tls-verify/],
    [kubeconfig({ user: 'client-certificate: a' }), /must be given together/],
    [kubeconfig({ user: 'token: [a]' }), /its token is not a text/],
    [kubeconfig().replace('https://10.0.0.1:6443', 'nowhere'), /no server address/],
    [`a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [${'*a,'.repeat(20)}]\nc: [${'*b,'.repeat(200)}]`, /./],
  ]
  for (const [content, message] of cases) {
    t.throws(() => parseKubeconfig(content, '/k'), { code: 'MALFORMED_KUBECONFIG', message })
  }
})

void t.test('keys and tokens are redacted', async (t) => {
  const parsed = parseKubeconfig(
    kubeconfig({
      user: `token: tttt\n    client-certificate-data: ${base64('c')}\n    client-key-data: ${base64('kkkk')}`,
    }),
    '/k',
  )
  t.notMatch(inspect(parsed, { depth: 9 }) + JSON.stringify(parsed), /tttt|kkkk/)
  t.throws(() => parseKubeconfig('token: tttt: [', '/k'), { message: /^[^t]*(?!tttt)/ })
})
