import t from 'tap'
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import type { BootVerdict } from '../../src/hub/boot/verdict.ts'
import { Client } from '../kit/client.ts'
import { plainNode } from '../kit/cluster/plain-node.ts'
import { freePort } from '../kit/free-port.ts'
import { portOf } from '../kit/wire/listening.ts'
import type { Teardown } from '../kit/wire/wire.ts'
import { nodehubProgram } from '../kit/hub-programs.ts'
import { until } from '../kit/until.ts'

t.setTimeout(300_000) // a process that starts takes its time on a busy machine

interface Kubeconfig {
  readonly clusters: readonly [{ readonly cluster: Readonly<Record<string, string>> }]
  readonly users: readonly [{ readonly user: Readonly<Record<string, string>> }]
}

/** The one cluster and user of a kubeconfig in JSON. */
function currentContext(text: string) {
  const { clusters, users } = JSON.parse(text) as Kubeconfig
  return { cluster: clusters[0].cluster, user: users[0].user }
}

const decoded = (data: string | undefined): string => Buffer.from(data ?? '', 'base64').toString()

/**
 * A demonstration that waits for what is typed, with what it has printed by then, and what it says
 * besides.
 */
async function startDemo(t: Teardown, ...flags: readonly string[]) {
  const demo = spawn(...plainNode(nodehubProgram, 'demo', ...flags), {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  t.teardown(() => demo.kill())
  const errors: string[] = []
  createInterface({ input: demo.stderr }).on('line', (line) => errors.push(line))
  const printed = demo.stdout.setEncoding('utf8')[Symbol.asyncIterator]()
  let text = ''
  /** Reads what is printed until it matches, and returns that; or to its end. */
  const read = async (until: RegExp): Promise<string> => {
    for (;;) {
      const found = until.exec(text)
      if (found) {
        const upTo = text.slice(0, found.index + found[0].length)
        text = text.slice(upTo.length)
        return upTo
      }
      const next = await printed.next()
      if (next.done === true) return text
      text += String(next.value)
    }
  }
  const said = await read(/q {2}quit\n/)
  /** Types a key and return, and reads what is printed about it. */
  const press = (key: string, until: RegExp): Promise<string> => {
    demo.stdin.write(`${key}\n`)
    return read(until)
  }
  return { demo, said, errors, press }
}

void t.test('demo keeps given ports, or names the process that has them', async (t) => {
  const port = await portOf(t, createServer())
  const { demo, said, errors } = await startDemo(
    t,
    '--proxy-port=0',
    '--serve-port=0',
    `--proxy-secure-port=${port}`,
  )
  t.equal(said, '', 'it moves nowhere')
  if (demo.exitCode === null) await once(demo, 'exit')
  t.equal(demo.exitCode, 1)
  t.match(errors.join('\n'), `nodehub demo: 127.0.0.1:${port} is taken: `)
  t.match(errors.join('\n'), `(process ${process.pid}, `)
  t.match(errors.join('\n'), '--proxy-secure-port sets another port')
  t.notMatch(errors.join('\n'), /^ {4}at /m)
})

void t.test('demo takes free ports but for those that flags name', async (t) => {
  const serve = await freePort()
  const { demo, said } = await startDemo(t, `--serve-port=${serve}`)
  t.match(said, `http://127.0.0.1:${serve}/readyz`)
  t.notMatch(said, /127\.0\.0\.1:1026[18]\b/)
  t.equal((await fetch(`http://127.0.0.1:${serve}/readyz`)).status, 200)
  const [, page = '', token = ''] = /^\s*Status page +(http:\S+\/)#token=(\S+)\n/.exec(said) ?? []
  const shown = new Client({ url: page.replace(/\/$/, ''), component: 'browser', token })
  t.match(await shown.get('/'), { status: 200, body: /<title>nodehub/ }, 'named first of all')
  t.match(await shown.get('/inspect/status'), { status: 200, body: /simulat|edge-1/ })
  demo.kill()
  t.strictSame(await once(demo, 'exit'), [0, null])
})

void t.test('demo refuses --server-addr', async (t) => {
  const { demo, said, errors } = await startDemo(t, '--server-addr=https://10.0.0.1:6443')
  t.equal(said, '')
  if (demo.exitCode === null) await once(demo, 'exit')
  t.equal(demo.exitCode, 2)
  t.match(errors.join('\n'), /--server-addr: the demonstration brings an API server of its own/)
})

void t.test('demo prints a kubeconfig for TLS, and its node can reboot offline', async (t) => {
  const { said } = await startDemo(t, '--proxy-port=0', '--serve-port=0', '--proxy-secure-port=0')
  const file = readFileSync(/KUBECONFIG=(\S+over-tls\S+)/.exec(said)?.[1] ?? '', 'utf8')
  const { cluster, user } = currentContext(file)
  const kubectl = new Client({
    url: String(cluster['server']),
    component: 'kubectl',
    tls: {
      ca: readFileSync(String(cluster['certificate-authority']), 'utf8'),
      cert: decoded(user['client-certificate-data']),
      key: decoded(user['client-key-data']),
    },
  })
  t.match((await kubectl.list('/api/v1/pods')).names, ['plant/collector-0'])

  const [, port, tokenFile = ''] =
    /inspect boot --serve-port=(\d+) --token-file=(\S+)/.exec(said) ?? []
  const headers = { Authorization: `Bearer ${readFileSync(tokenFile, 'utf8')}` }
  const verdict = async () =>
    (await (
      await fetch(`http://127.0.0.1:${port}/inspect/boot`, { headers })
    ).json()) as BootVerdict
  await until('the node to be ready for a reboot', async () => (await verdict()).ready)
  t.match(await verdict(), { pods: { length: 9 } })
})

const anyPorts = ['--proxy-port=0', '--serve-port=0', '--proxy-secure-port=0']

void t.test('each key of the demo prints its effect', async (t) => {
  const { demo, said, press } = await startDemo(t, ...anyPorts)
  const [, url = ''] = /The hub before it +(http:\S+),/.exec(said) ?? []
  const pods = async () =>
    (await new Client({ url, component: 'kubectl' }).list('/api/v1/pods')).names

  const filtered = /kube-proxy of this node is shown (\d) of its 4 endpoints.*\n/
  t.match(await press('f', filtered), 'shown 3 of its 4 endpoints')
  t.match(await press('f', filtered), 'shown 4 of its 4 endpoints')

  t.match(await press('n', /Which ports clash.*\n/), /network: press-a and press-b,/)
  const all = (await pods()).length
  t.equal(all, 11)

  t.match(await press('z', /it is unhealthy.*\n/), 'takes connections and answers nothing')
  t.equal((await pods()).length, all, 'the other API server answers')
  await press('z', /answers again/)

  t.match(await press('b', /Press p for the cloud/), `the kubelet got its ${all} pods`)
  t.equal((await pods()).length, all, 'from the disk')
  await press('f', /That takes the cloud: press p first/)
  await press('p', /The cloud is there/)

  await press('?', /q {2}quit\n/)
  await press('q', /Stopping/)
  t.strictSame(await once(demo, 'exit'), [0, null])
})
