/**
 * The hub's ports are above 1023: while the hub is down, any user of the node may bind them. It
 * then reads what clients send to it and answers them, also at [::1] alone, which clients that call
 * `localhost` may try first.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { get } from 'node:https'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import { join as joinCommand } from '../../src/cli/join-command.ts'
import { findBinaries } from '../kit/cluster/binaries.ts'
import { plainNode } from '../kit/cluster/plain-node.ts'
import { freePort } from '../kit/free-port.ts'
import { startCloud } from '../kit/hub.ts'
import { hubFlags } from '../kit/hub-config.ts'
import { HubProcess } from '../kit/hub-process.ts'
import { startAs } from '../kit/other-user.ts'
import { until } from '../kit/until.ts'
import { nodeRoot } from '../node/join/node-root.ts'
import { rootFolder } from '../kit/root-folder.ts'

t.setTimeout(300_000) // a process that starts takes its time on a busy machine

const skip =
  process.platform !== 'linux' || process.getuid?.() !== 0 ? 'only root can be two users' : false

const another = 65_534

interface Place {
  readonly port: number
  readonly address: string
}

/**
 * Binds each address and prints the result, then each request that it gets; over TLS with a
 * certificate.
 */
const squatter = (places: readonly Place[], shown?: object): string => `
const shown = ${JSON.stringify(shown ?? null)}
const answer = (request, response) => {
  console.log('asked', request.headers.authorization)
  response.end('ok')
}
for (const { port, address } of ${JSON.stringify(places)}) {
  const server = shown
    ? require('node:https').createServer(shown, answer)
    : require('node:http').createServer(answer)
  server.on('error', ({ code }) => console.log(code))
  server.listen(port, address, () => console.log('bound'))
}
process.stdin.on('end', () => process.exit(0)).resume()
`

/** Another user's process that squats; what it says, line by line. */
async function squat(t: Test, places: readonly Place[], shown?: object) {
  const started = startAs(another, squatter(places, shown))
  t.teardown(() => started.process.kill())
  const { stdout } = started.process
  if (!stdout) throw new Error('it has no output')
  const lines: string[] = []
  const said = Promise.withResolvers<void>()
  createInterface({ input: stdout }).on('line', (line) => {
    lines.push(line)
    if (lines.length === places.length) said.resolve()
  })
  await Promise.race([said.promise, started.failed])
  return { pid: started.process.pid, lines }
}

const refusesConnections = async (port: number, host: string): Promise<boolean> => {
  const socket = connect(port, host)
  const [outcome] = await Promise.race([
    once(socket, 'connect').then(() => ['taken']),
    once(socket, 'error').then(() => ['refused']),
  ]).catch(() => ['refused'])
  socket.destroy()
  return outcome === 'refused'
}

for (const address of ['127.0.0.1', '::1']) {
  void t.test(
    `a hub that finds another user at ${address} names it, and serves nothing`,
    { skip },
    async (t) => {
      const cloud = await startCloud(t)
      const rootDir = mkdtempSync(join(tmpdir(), 'nodehub-squatted-'))
      t.teardown(() => rmSync(rootDir, { recursive: true, force: true }))
      const [proxy, secure, ops] = [await freePort(), await freePort(), await freePort()]
      const { pid, lines } = await squat(t, [{ port: secure, address }])
      t.strictSame(lines, ['bound'])
      const flags = hubFlags(rootDir, { upstreams: [cloud] })
      const hub = new HubProcess(rootDir, [proxy, secure, ops], flags)
      t.teardown(() => hub.kill())
      t.equal(await hub.ended(), 1)
      const place = address === '::1' ? `[::1]:${secure}` : `127.0.0.1:${secure}`
      const { level, msg } = await hub.says(/cannot run/)
      t.equal(level, 'fatal')
      t.equal(
        msg,
        `the hub cannot run: ${place} is taken: "${process.execPath}" (process ${pid}, uid ${another}) listens at ${place}, ` +
          'and reads what clients of this program send there; --proxy-secure-port sets another port',
      )
      t.notOk(
        hub.lines.some((line) => 'err' in line),
        'without a stack',
      )
      for (const port of [proxy, ops]) {
        for (const host of ['127.0.0.1', '::1']) t.ok(await refusesConnections(port, host))
      }
    },
  )
}

void t.test(
  'a client that trusts the hub’s authority alone shows a squatter nothing',
  { skip },
  async (t) => {
    const hubs = await CertificateAuthority.create('hub')
    const strangers = await CertificateAuthority.create('stranger')
    const { certificate, key } = await strangers.issue({
      commonName: 'localhost',
      usage: 'server',
      ipAddresses: ['127.0.0.1'],
    })
    const port = await freePort()
    const { lines } = await squat(t, [{ port, address: '127.0.0.1' }], { cert: certificate, key })
    const ask = (ca: string) =>
      once(
        get({
          host: '127.0.0.1',
          port,
          ca,
          agent: false,
          headers: { authorization: 'Bearer secret' },
        }),
        'response',
      )
    await t.rejects(ask(hubs.certificate), { code: /SELF_SIGNED_CERT|UNABLE_TO/ })
    t.strictSame(lines, ['bound'], 'the token did not get there')
    await ask(strangers.certificate)
    await until('the request that the squatter got', () => lines.length > 1)
    t.strictSame(lines.slice(1), ['asked Bearer secret'], 'as it does where the client trusts it')
  },
)

void t.test(
  'join changes nothing while another user is at a port of the hub',
  { skip },
  async (t) => {
    const folder = t.testdir({
      'kubelet.conf': JSON.stringify({
        clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:1' } }],
        users: [
          {
            name: 'u',
            user: {
              'client-certificate': resolve('test/fixtures/credentials/client.crt'),
              'client-key': resolve('test/fixtures/credentials/client.key'),
            },
          },
        ],
        contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
        'current-context': 'x',
      }),
    })
    const [proxy, secure, ops] = [await freePort(), await freePort(), await freePort()]
    const { pid } = await squat(t, [{ port: ops, address: '::1' }])
    const said = { out: '', err: '' }
    const terminal = {
      out: (text: string) => (said.out += text),
      err: (text: string) => (said.err += text),
    }
    const join = (servePort: number) =>
      joinCommand.run(
        [
          '--nodepool-name=a',
          '--host-network-pool=false',
          '--dry-run',
          `--proxy-port=${proxy}`,
          `--proxy-secure-port=${secure}`,
          `--serve-port=${servePort}`,
          `--kubelet-kubeconfig=${folder}/kubelet.conf`,
          `--hub-kubeconfig=${folder}/hub.conf`,
          `--kubelet-flags=${folder}/flags.env`,
          `--manifest-dir=${folder}`,
          `--root-dir=${folder}/state`,
          `--cni-conf-dir=${folder}/cni`,
        ],
        terminal,
      )
    t.equal(await join(ops), 1)
    t.equal(
      said.err,
      `nodehub join: "${process.execPath}" (process ${pid}, uid ${another}) listens at [::1]:${ops}: a hub could not start there, ` +
        'and clients would not reach it\nNothing was changed.\n',
    )
    t.equal(said.out, '')
    t.equal(await join(await freePort()), 0, 'as it does elsewhere')
    t.match(said.out, `https://127.0.0.1:${secure}`)
    t.notMatch(said.out, 'http://')
  },
)

const tools = findBinaries(['systemd-socket-activate'])

void t.test(
  'while systemd holds the sockets no other program can take them, whether the hub runs or not',
  { skip: skip || ('missing' in tools && tools.missing) },
  async (t) => {
    if ('missing' in tools) return
    const cloud = await startCloud(t)
    const rootDir = mkdtempSync(join(tmpdir(), 'nodehub-held-'))
    t.teardown(() => rmSync(rootDir, { recursive: true, force: true }))
    const [proxy, secure, ops] = [await freePort(), await freePort(), await freePort()]
    const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts')
    const [command, args] = plainNode(
      main,
      'start',
      ...hubFlags(rootDir, { upstreams: [cloud] }),
      `--proxy-port=${proxy}`,
      `--proxy-secure-port=${secure}`,
      `--serve-port=${ops}`,
    )
    const listen = ['127.0.0.1', '[::1]'].flatMap((host) =>
      [proxy, secure, ops].map((port) => `--listen=${host}:${port}`),
    )
    const systemd = spawn(tools.paths['systemd-socket-activate'], [...listen, command, ...args], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    t.teardown(() => systemd.kill('SIGKILL'))
    const log = createInterface({ input: systemd.stderr })
    const heard: string[] = []
    const listens = Promise.withResolvers<void>()
    const serves = Promise.withResolvers<void>()
    log.on('line', (line) => {
      heard.push(line)
      if (heard.filter((each) => each.startsWith('Listening on')).length === 6) listens.resolve()
      if (line.includes('"msg":"ready"')) serves.resolve()
    })
    await listens.promise
    const addresses = ['127.0.0.1', '::1']
    const places = [proxy, secure, ops].flatMap((port) =>
      addresses.map((address) => ({ port, address })),
    )
    const taken = places.map(() => 'EADDRINUSE')
    t.strictSame((await squat(t, places)).lines, taken, 'before the hub')
    const first = connect(proxy, '127.0.0.1')
    t.teardown(() => first.destroy())
    await serves.promise
    t.match(heard.join('\n'), `"listener":"proxy","address":"[::1]:${proxy}"`)
    t.strictSame((await squat(t, places)).lines, taken, 'beside the hub')
    for (const host of addresses) {
      const answer = await fetch(`http://${host === '::1' ? '[::1]' : host}:${ops}/readyz?verbose`)
      t.match(await answer.text(), `[+]listening proxy-secure [::1]:${secure}`)
    }
  },
)

/** What becomes of ports that another user binds in a network of its own, set as `first` says. */
function boundAfter(first: string): string {
  const binding = `
    const bind = (ports) => {
      const [port, ...others] = ports
      if (port === undefined) return
      const server = require('node:net').createServer()
      server.on('error', ({ code }) => { console.log(port, code); bind(others) })
      server.listen(port, '0.0.0.0', () => { console.log(port, 'bound'); server.close(); bind(others) })
    }
    bind([10261, 10267, 10268, 10269])`
  const asAnother = `exec setpriv --reuid=${another} --regid=${another} --clear-groups`
  const node = openSync(process.execPath, 'r')
  const { stdout, stderr, status } = spawnSync(
    'unshare',
    [
      '--net',
      'sh',
      '-c',
      `${first} && ${asAnother} env -u NODE_OPTIONS /proc/self/fd/3 -e "$0"`,
      binding,
    ],
    { stdio: ['ignore', 'pipe', 'pipe', node], encoding: 'utf8' },
  )
  closeSync(node)
  if (status !== 0) throw new Error(stderr)
  return stdout
}

const separate = findBinaries(['unshare', 'setpriv', 'sysctl'])

void t.test(
  'after join --keep-ports the kernel gives the ports of the hub to no other user',
  { skip: skip || ('missing' in separate && separate.missing) },
  async (t) => {
    const image = nodeRoot(rootFolder(t))
    const argv = ['--nodepool-name=kiosks', '--host-network-pool=false', `--root=${image}`]
    const silent = { out: () => undefined, err: () => undefined }
    t.equal(await joinCommand.run([...argv, '--keep-ports'], silent), 0)
    t.equal(
      boundAfter('true'),
      '10261 bound\n10267 bound\n10268 bound\n10269 bound\n',
      'as it is without it',
    )
    t.equal(
      boundAfter(`sysctl -q -p ${join(image, 'etc/sysctl.d/90-nodehub.conf')}`),
      '10261 EACCES\n10267 EACCES\n10268 EACCES\n10269 bound\n',
    )
  },
)
