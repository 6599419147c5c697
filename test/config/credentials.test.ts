import t from 'tap'
import { readFileSync } from 'node:fs'
import { readConfig } from '../../src/config/config.ts'
import { readCredentials } from '../../src/config/credentials.ts'

const fixture = (name: string) => `test/fixtures/credentials/${name}`
const readFile = (path: string) => readFileSync(path, 'utf8')
const certificate = fixture('client.crt')
const key = fixture('client.key')
const ca = fixture('ca.crt')

void t.test('certificate, key and CA are read from their files', async (t) => {
  const read = readCredentials({ kind: 'files', certificate, key, ca }, readFile)
  t.equal(read.ca, readFile(ca))
  t.equal(read.certificate?.chain, readFile(certificate))
  t.equal(read.certificate?.key.reveal().trim(), readFile(key).trim())
  t.strictSame([...read.files].sort(), [ca, certificate, key].sort())
})

void t.test('one file may hold certificate and key, as the kubelet keeps them', async (t) => {
  const both = readFile(certificate) + readFile(key)
  const read = readCredentials({ kind: 'files', certificate: '/c', key: '/c' }, () => both)
  t.equal(read.certificate?.chain, both)
})

void t.test('a kubeconfig names its files, which are watched with it', async (t) => {
  const content = JSON.stringify({
    clusters: [{ name: 'c', cluster: { server: 'https://c', 'certificate-authority': ca } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    users: [{ name: 'u', user: { 'client-certificate': certificate, 'client-key': key } }],
  })
  const read = readCredentials({ kind: 'kubeconfig', file: './kubeconfig' }, (path) =>
    path === './kubeconfig' ? content : readFile(path),
  )
  t.ok(read.certificate)
  t.match(read.files, ['./kubeconfig', /ca\.crt$/, /client\.crt$/, /client\.key$/])
})

void t.test('a certificate without its key is no credential, nor is a key alone', async (t) => {
  for (const half of [{ certificate }, { key }]) {
    t.throws(() => readCredentials({ kind: 'files', ca, ...half }, readFile), {
      code: 'UNUSABLE_CREDENTIALS',
    })
  }
  t.match(readCredentials({ kind: 'files', ca }, readFile), { ca: readFile(ca) })
})

void t.test('a pair that does not match is refused, without showing the key', async (t) => {
  const attempt = (files: { certificate?: string; key?: string; ca?: string }) => () =>
    readCredentials({ kind: 'files', certificate, key, ...files }, readFile)
  t.throws(attempt({ key: fixture('other.key') }), {
    message: /the certificate in .*client\.crt and the key in .*other\.key do not belong together/,
  })
  t.throws(attempt({ key: certificate }), { message: /is not a private key in PEM$/ })
  t.throws(attempt({ certificate: key }), { message: /is not a certificate in PEM$/ })
  t.throws(attempt({ ca: key }), { message: /the CA of .* is not a certificate/ })
  t.throws(attempt({ ca: '/none' }), { message: /\/none cannot be read: there is no such file/ })
})

void t.test('credentials that cannot be used are mistakes of the configuration', async (t) => {
  const mistakes = (...argv: string[]) => {
    const result = readConfig({
      argv: ['--server-addr=https://a', ...argv],
      env: { NODEHUB_BOOTSTRAP_MODE: 'anonymous' },
      hostname: 'n',
      readFile,
    })
    return 'mistakes' in result ? result.mistakes : []
  }
  t.strictSame(
    mistakes(`--upstream-client-cert=${certificate}`, `--upstream-client-key=${key}`),
    [],
  )
  t.match(
    mistakes(
      `--upstream-client-cert=${certificate}`,
      `--upstream-client-key=${fixture('other.key')}`,
    ),
    [/do not belong together/],
  )
  t.match(mistakes(`--kubeconfig=${certificate}`), [/^--kubeconfig=.*: /])
  t.match(mistakes(`--upstream-client-cert=${certificate}`), [/must be given together/])
})
