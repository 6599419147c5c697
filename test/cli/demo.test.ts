import t from 'tap'
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import type { BootVerdict } from '../../src/boot/verdict.ts'
import { Client } from '../kit/client.ts'
import { plainNode } from '../kit/cluster/plain-node.ts'
import type { Teardown } from '../kit/wire/wire.ts'

t.setTimeout(120_000) // a process that starts takes its time on a busy machine

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

/** A demonstration that waits for what is typed, with what it has printed by then. */
async function startDemo(t: Teardown, ...flags: readonly string[]) {
  const demo = spawn(...plainNode('src/main.ts', 'demo', ...flags), {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => demo.kill())
  let said = ''
  for await (const line of createInterface({ input: demo.stdout })) {
    said += `${line}\n`
    if (line.includes('q  quit')) break
  }
  return { demo, said }
}

void t.test('the demonstration takes free ports where any of its own is taken', async (t) => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const { port } = other.address() as AddressInfo
  const { demo, said } = await startDemo(
    t,
    '--proxy-port=0',
    '--serve-port=0',
    `--proxy-secure-port=${port}`,
  )
  t.equal((await fetch(/http:\/\/\S+\/readyz/.exec(said)?.[0] ?? '')).status, 200)
  demo.kill()
  t.strictSame(await once(demo, 'exit'), [0, null])
})

void t.test('the demonstration says how to ask over TLS, too', async (t) => {
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
})

void t.test('the demonstration’s node would come back without its cloud', async (t) => {
  const { said } = await startDemo(t, '--proxy-port=0', '--serve-port=0', '--proxy-secure-port=0')
  const [, port] = /inspect boot --serve-port=(\d+)/.exec(said) ?? []
  const verdict = async () =>
    (await (await fetch(`http://127.0.0.1:${port}/inspect/boot`)).json()) as BootVerdict
  while (!(await verdict()).ready);
  t.match(await verdict(), { pods: { length: 9 } })
})
